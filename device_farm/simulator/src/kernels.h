// The one inner loop everything heavy ends in: matrix multiplication against packed weights.
#ifndef DEVICE_FARM_SIMULATOR_SRC_KERNELS_H_
#define DEVICE_FARM_SIMULATOR_SRC_KERNELS_H_

#include <cstddef>
#include <vector>

namespace nnsim {

// Columns of one packed panel.
constexpr size_t kPanel = 16;

// Packs the [columns, depth] matrix (row-major, one row an output channel) into panels of kPanel
// columns: [columns / kPanel][depth][kPanel], the last panel filled with zeros.
std::vector<float> PackPanels(const float* matrix, size_t columns, size_t depth);

// c[m, n] = clamp(a[m, k] * packed + bias[n], low, high); lda and ldc are row strides in elements.
// Single-threaded: callers split the rows or the panels.
struct GemmArgs {
  const float* a;
  size_t lda;
  const float* packed;
  const float* bias;  // n values
  float* c;
  size_t ldc;
  size_t m, n, k;
  float low, high;
};

void Gemm(const GemmArgs& args);

// acc[i] += a[i] * b[i]: the inner loop of depthwise convolution.
void MultiplyAdd(const float* a, const float* b, float* acc, size_t count);

namespace baseline {
void Gemm(const GemmArgs& args);
void MultiplyAdd(const float* a, const float* b, float* acc, size_t count);
}  // namespace baseline
namespace avx2 {
void Gemm(const GemmArgs& args);
void MultiplyAdd(const float* a, const float* b, float* acc, size_t count);
}  // namespace avx2

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_KERNELS_H_
