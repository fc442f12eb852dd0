#include "kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace nnsim {

std::vector<float> PackPanels(const float* matrix, size_t columns, size_t depth) {
  const size_t panels = (columns + kPanel - 1) / kPanel;
  std::vector<float> packed(panels * kPanel * depth, 0.0f);
  for (size_t n = 0; n < columns; ++n) {
    float* out = packed.data() + (n / kPanel) * kPanel * depth + n % kPanel;
    for (size_t k = 0; k < depth; ++k) out[k * kPanel] = matrix[n * depth + k];
  }
  return packed;
}

#if defined(__x86_64__)
namespace {

// By hand: the compiler's own __builtin_cpu_supports does not link into a shared library here.
bool DetectAvx2() {
  constexpr unsigned kFma = 1u << 12, kOsxsave = 1u << 27, kAvx2 = 1u << 5, kYmmState = 6;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & kFma) || !(c & kOsxsave)) return false;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & kAvx2)) return false;
  unsigned low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & kYmmState) == kYmmState;
}

bool HasAvx2() {
  static const bool has = DetectAvx2();
  return has;
}

}  // namespace

void Gemm(const GemmArgs& args) { HasAvx2() ? avx2::Gemm(args) : baseline::Gemm(args); }
void MultiplyAdd(const float* a, const float* b, float* acc, size_t count) {
  HasAvx2() ? avx2::MultiplyAdd(a, b, acc, count) : baseline::MultiplyAdd(a, b, acc, count);
}
#else
void Gemm(const GemmArgs& args) { baseline::Gemm(args); }
void MultiplyAdd(const float* a, const float* b, float* acc, size_t count) {
  baseline::MultiplyAdd(a, b, acc, count);
}
#endif

}  // namespace nnsim
