// Strict base64: a bad character or length is refused, unlike in the decoder of tvm_ffi.
#ifndef NNFARM_PLAYER_BASE64_H_
#define NNFARM_PLAYER_BASE64_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace nnfarm {

// The decoded bytes, or nothing when `text` is not canonical padded base64.
std::optional<std::vector<uint8_t>> DecodeBase64(std::string_view text);

}  // namespace nnfarm

#endif  // NNFARM_PLAYER_BASE64_H_
