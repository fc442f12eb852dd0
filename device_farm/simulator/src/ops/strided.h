// Copying between tensors that are walked with strides: the one way elements are moved.
#ifndef DEVICE_FARM_SIMULATOR_SRC_OPS_STRIDED_H_
#define DEVICE_FARM_SIMULATOR_SRC_OPS_STRIDED_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensor.h"

namespace nnsim {

using Strides = std::vector<int64_t>;

// Element strides of a compact tensor.
Strides CompactStrides(const Dims& dims);

// For every index i of `dims`: to[to_start + i . to_strides] = from[from_start + i . from_strides].
// Strides and starts count elements of `element_size` bytes and may be 0 or negative.
struct StridedCopy {
  Dims dims;
  const uint8_t* from;
  int64_t from_start;
  Strides from_strides;
  uint8_t* to;
  int64_t to_start;
  Strides to_strides;
  size_t element_size;

  void Run() const;
};

// Copies `from`, seen as `dims`, to a compact `to` whose dimension i is dimension order[i].
void Permute(const uint8_t* from, const Dims& dims, const std::vector<size_t>& order, uint8_t* to,
             size_t element_size);

// Sets all elements to the stored zero of the type: the zero point of quantized tensors.
void FillZero(const Tensor& tensor);

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_OPS_STRIDED_H_
