#include "ops/strided.h"

#include <cstring>

namespace nnsim {
namespace {

template <typename T>
void CopyLine(const StridedCopy& copy, int64_t from, int64_t to) {
  const size_t last = copy.dims.size() - 1;
  const T* source = reinterpret_cast<const T*>(copy.from);
  T* target = reinterpret_cast<T*>(copy.to);
  const int64_t from_step = copy.from_strides[last], to_step = copy.to_strides[last];
  if (from_step == 1 && to_step == 1) {
    std::memcpy(target + to, source + from, copy.dims[last] * sizeof(T));
    return;
  }
  for (uint32_t i = 0; i < copy.dims[last]; ++i) {
    target[to + i * to_step] = source[from + i * from_step];
  }
}

template <typename T>
void CopyAll(const StridedCopy& copy) {
  const size_t outer = copy.dims.size() - 1;
  std::vector<uint32_t> index(outer, 0);
  int64_t from = copy.from_start, to = copy.to_start;
  for (;;) {
    CopyLine<T>(copy, from, to);
    size_t d = outer;
    for (; d > 0; --d) {
      from += copy.from_strides[d - 1];
      to += copy.to_strides[d - 1];
      if (++index[d - 1] < copy.dims[d - 1]) break;
      from -= static_cast<int64_t>(copy.dims[d - 1]) * copy.from_strides[d - 1];
      to -= static_cast<int64_t>(copy.dims[d - 1]) * copy.to_strides[d - 1];
      index[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

}  // namespace

Strides CompactStrides(const Dims& dims) {
  Strides strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return strides;
}

void StridedCopy::Run() const {
  if (dims.empty() || ElementCount(dims) == 0) return;
  if (element_size == 1) return CopyAll<uint8_t>(*this);
  if (element_size == 2) return CopyAll<uint16_t>(*this);
  CopyAll<uint32_t>(*this);
}

void Permute(const uint8_t* from, const Dims& dims, const std::vector<size_t>& order, uint8_t* to,
             size_t element_size) {
  const Strides strides = CompactStrides(dims);
  Dims out;
  Strides from_strides;
  for (size_t d : order) {
    out.push_back(dims[d]);
    from_strides.push_back(strides[d]);
  }
  StridedCopy{out, from, 0, from_strides, to, 0, CompactStrides(out), element_size}.Run();
}

void FillZero(const Tensor& tensor) {
  const size_t size = Info(tensor.type).size;
  if (size == 1) {
    std::memset(tensor.data, tensor.zero_point & 0xff, tensor.count());
  } else if (tensor.count() != 0) {
    std::memset(tensor.data, 0, tensor.size_bytes());
  }
}

}  // namespace nnsim
