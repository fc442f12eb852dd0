// SHA-256 (FIPS 180-4), for names of content; not for secrets.
#ifndef NNFARM_BASE_SHA256_H_
#define NNFARM_BASE_SHA256_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace nnfarm {

using Sha256Digest = std::array<uint8_t, 32>;

Sha256Digest Sha256(std::string_view bytes);

// 64 lower-case hex digits.
std::string HexText(const Sha256Digest& digest);

}  // namespace nnfarm

#endif  // NNFARM_BASE_SHA256_H_
