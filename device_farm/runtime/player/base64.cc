#include "player/base64.h"

namespace nnfarm {
namespace {

int SixBits(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  if (c == '/') return 63;
  return -1;
}

}  // namespace

std::optional<std::vector<uint8_t>> DecodeBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::vector<uint8_t> bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  int bit_count = 0;
  for (const char c : text.substr(0, text.size() - padding)) {
    const int six = SixBits(c);
    if (six < 0) return std::nullopt;
    bits = (bits << 6 | static_cast<uint32_t>(six)) & 0xFFFU;
    bit_count += 6;
    if (bit_count < 8) continue;
    bit_count -= 8;
    bytes.push_back(static_cast<uint8_t>(bits >> bit_count));
  }
  // Bits that no byte takes must be zero, or two texts would mean the same bytes.
  if ((bits & ((1U << bit_count) - 1U)) != 0) return std::nullopt;
  return bytes;
}

}  // namespace nnfarm
