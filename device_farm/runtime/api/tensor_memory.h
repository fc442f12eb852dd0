// Memory of input tensors.
#ifndef NNFARM_API_TENSOR_MEMORY_H_
#define NNFARM_API_TENSOR_MEMORY_H_

#include <tvm/ffi/container/tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nnfarm {

// A tensor on the CPU, aligned as TVM's kernels may assume; its content is undefined.
// Throws RunError (failed) when there is no memory.
tvm::ffi::Tensor AllocateTensor(const std::vector<int64_t>& shape, DLDataType dtype);

// Bytes of `shape`; nothing when the product passes `limit`.
std::optional<uint64_t> ShapeSize(const std::vector<int64_t>& shape, uint64_t element_size,
                                  uint64_t limit);

}  // namespace nnfarm

#endif  // NNFARM_API_TENSOR_MEMORY_H_
