// NumPy broadcasting of two operands.
#ifndef DEVICE_FARM_SIMULATOR_SRC_OPS_BROADCAST_H_
#define DEVICE_FARM_SIMULATOR_SRC_OPS_BROADCAST_H_

#include <algorithm>

#include "parallel.h"
#include "status.h"
#include "tensor.h"

namespace nnsim {

inline Status BroadcastShape(const Dims& a, const Dims& b, Dims* out) {
  const size_t rank = std::max(a.size(), b.size());
  out->assign(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const uint32_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const uint32_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    NNSIM_REQUIRE(x == y || x == 1 || y == 1,
                  "shapes " + ToString(a) + " and " + ToString(b) + " do not broadcast");
    (*out)[rank - 1 - i] = x == 1 ? y : x;
  }
  return Ok();
}

// Element strides of a tensor of shape `dims` walked along the shape `out`: 0 where it repeats.
inline std::vector<size_t> BroadcastStrides(const Dims& dims, const Dims& out) {
  std::vector<size_t> strides(out.size(), 0);
  size_t stride = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    const size_t d = dims.size() - 1 - i;
    strides[out.size() - 1 - i] = dims[d] == 1 ? 0 : stride;
    stride *= dims[d];
  }
  return strides;
}

// out[...] = f(a[...], b[...]).
template <typename T, typename R, typename F>
void BroadcastApply(const T* a, const Dims& a_dims, const T* b, const Dims& b_dims, R* out,
                    const Dims& dims, F f) {
  const size_t count = ElementCount(dims);
  if (count == 0) return;
  if (a_dims == b_dims) {
    ParallelFor(count, 32768, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) out[i] = f(a[i], b[i]);
    });
    return;
  }
  const size_t inner = dims.empty() ? 1 : dims.back();
  const std::vector<size_t> sa = BroadcastStrides(a_dims, dims);
  const std::vector<size_t> sb = BroadcastStrides(b_dims, dims);
  const size_t ia = sa.empty() ? 0 : sa.back(), ib = sb.empty() ? 0 : sb.back();
  ParallelFor(count / inner, 32768 / inner + 1, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      size_t rest = row, offset_a = 0, offset_b = 0;
      for (size_t d = dims.size(); d-- > 1;) {
        const size_t position = rest % dims[d - 1];
        rest /= dims[d - 1];
        offset_a += position * sa[d - 1];
        offset_b += position * sb[d - 1];
      }
      for (size_t i = 0; i < inner; ++i) {
        out[row * inner + i] = f(a[offset_a + i * ia], b[offset_b + i * ib]);
      }
    }
  });
}

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_OPS_BROADCAST_H_
