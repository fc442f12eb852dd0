#include "base/sha256.h"

namespace nnfarm {
namespace {

constexpr size_t kBlockSize = 64;
constexpr size_t kLengthSize = 8;

constexpr uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t RotateRight(uint32_t word, int count) { return word >> count | word << (32 - count); }

using State = std::array<uint32_t, 8>;

std::array<uint32_t, 64> Schedule(const uint8_t* block) {
  std::array<uint32_t, 64> words{};
  for (size_t i = 0; i < 16; ++i) {
    for (size_t byte = 0; byte < 4; ++byte) words[i] = words[i] << 8 | block[i * 4 + byte];
  }
  for (size_t i = 16; i < words.size(); ++i) {
    const uint32_t early = words[i - 15];
    const uint32_t late = words[i - 2];
    const uint32_t s0 = RotateRight(early, 7) ^ RotateRight(early, 18) ^ early >> 3;
    const uint32_t s1 = RotateRight(late, 17) ^ RotateRight(late, 19) ^ late >> 10;
    words[i] = words[i - 16] + s0 + words[i - 7] + s1;
  }
  return words;
}

void Absorb(const uint8_t* block, State* state) {
  const std::array<uint32_t, 64> words = Schedule(block);
  auto [a, b, c, d, e, f, g, h] = *state;
  for (size_t i = 0; i < words.size(); ++i) {
    const uint32_t s1 = RotateRight(e, 6) ^ RotateRight(e, 11) ^ RotateRight(e, 25);
    const uint32_t first = h + s1 + ((e & f) ^ (~e & g)) + kRounds[i] + words[i];
    const uint32_t s0 = RotateRight(a, 2) ^ RotateRight(a, 13) ^ RotateRight(a, 22);
    const uint32_t second = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const State added = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < added.size(); ++i) (*state)[i] += added[i];
}

}  // namespace

Sha256Digest Sha256(std::string_view bytes) {
  State state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t done = 0;
  for (; bytes.size() - done >= kBlockSize; done += kBlockSize) Absorb(data + done, &state);
  std::string tail(bytes.substr(done));
  tail += static_cast<char>(0x80);
  while (tail.size() % kBlockSize != kBlockSize - kLengthSize) tail += '\0';
  const uint64_t bits = static_cast<uint64_t>(bytes.size()) * 8;
  for (int shift = 56; shift >= 0; shift -= 8) tail += static_cast<char>(bits >> shift & 0xFFU);
  for (size_t at = 0; at < tail.size(); at += kBlockSize) {
    Absorb(reinterpret_cast<const uint8_t*>(tail.data()) + at, &state);
  }
  Sha256Digest digest{};
  for (size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<uint8_t>(state[i / 4] >> (24 - i % 4 * 8));
  }
  return digest;
}

std::string HexText(const Sha256Digest& digest) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(digest.size() * 2);
  for (const uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 0xFU];
  }
  return text;
}

}  // namespace nnfarm
