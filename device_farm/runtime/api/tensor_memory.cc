#include "api/tensor_memory.h"

#include <algorithm>
#include <cstdlib>

#include "api/run_error.h"

namespace nnfarm {
namespace {

namespace ffi = tvm::ffi;

// What TVM's kernels may assume of their arguments.
constexpr size_t kAlignment = 64;

struct AlignedAllocation {
  void AllocData(DLTensor* tensor) {
    void* data = nullptr;
    const size_t size = std::max<size_t>(ffi::GetDataSize(*tensor), 1);
    if (posix_memalign(&data, kAlignment, size) != 0) {
      ThrowFailed("no memory for an input of " + std::to_string(size) + " bytes");
    }
    tensor->data = data;
  }
  void FreeData(DLTensor* tensor) { std::free(tensor->data); }
};

}  // namespace

ffi::Tensor AllocateTensor(const std::vector<int64_t>& shape, DLDataType dtype) {
  return ffi::Tensor::FromNDAlloc(AlignedAllocation(), ffi::ShapeView(shape.data(), shape.size()),
                                  dtype, DLDevice{kDLCPU, 0});
}

std::optional<uint64_t> ShapeSize(const std::vector<int64_t>& shape, uint64_t element_size,
                                  uint64_t limit) {
  uint64_t size = element_size;
  for (const int64_t dim : shape) {
    const auto extent = static_cast<uint64_t>(dim);
    if (extent != 0 && size > limit / extent) return std::nullopt;
    size *= extent;
  }
  return size;
}

}  // namespace nnfarm
