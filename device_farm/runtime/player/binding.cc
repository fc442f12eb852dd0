#include "player/binding.h"

#include <tvm/ffi/container/tensor.h>

#include <limits>

namespace nnfarm {
namespace {

namespace ffi = tvm::ffi;

// An argument as messages name it.
struct Place {
  const std::string& symbol;
  size_t index;

  [[noreturn]] void Refuse(const std::string& reason) const {
    RefuseTensor(symbol + " argument " + std::to_string(index), reason);
  }
};

// Bytes of a compact tensor, refusing a product that no memory can have.
uint64_t DataSize(const DLTensor& tensor, const Place& place) {
  const uint64_t element_size = (static_cast<uint64_t>(tensor.dtype.bits) * tensor.dtype.lanes) / 8;
  uint64_t size = element_size;
  for (int i = 0; i < tensor.ndim; ++i) {
    const auto dim = static_cast<uint64_t>(tensor.shape[i]);
    if (tensor.shape[i] < 0 || (dim != 0 && size > std::numeric_limits<size_t>::max() / dim)) {
      place.Refuse("bad shape");
    }
    size *= dim;
  }
  return size;
}

void CheckShape(const DLTensor& tensor, const EncodedOperand& operand, const Place& place) {
  if (static_cast<size_t>(tensor.ndim) != operand.dims.size()) place.Refuse("wrong rank");
  for (size_t i = 0; i < operand.dims.size(); ++i) {
    const bool known = operand.dims[i] != 0;
    const int64_t dim = tensor.shape[i];
    if (known ? dim != operand.dims[i] : dim < 0 || dim > std::numeric_limits<uint32_t>::max()) {
      place.Refuse("dimension " + std::to_string(i) + " is " + std::to_string(dim) + ", " +
                   std::to_string(operand.dims[i]) + " expected");
    }
  }
}

}  // namespace

void RefuseTensor(const std::string& place, const std::string& reason) {
  throw ffi::Error("ValueError", place + ": " + reason, "");
}

const DLTensor& TensorAt(const ffi::PackedArgs& arguments, size_t index) {
  const auto tensor = arguments[static_cast<int>(index)].try_cast<DLTensor*>();
  if (!tensor.has_value() || *tensor == nullptr) {
    RefuseTensor("argument " + std::to_string(index), "a tensor is expected");
  }
  return **tensor;
}

Binding BindTensor(const DLTensor& tensor, const EncodedOperand& operand,
                   const std::string& symbol, size_t index) {
  const Place place{symbol, index};
  if (tensor.device.device_type != kDLCPU) place.Refuse("not on the CPU");
  if (!ffi::IsContiguous(tensor)) place.Refuse("not compact");
  CheckShape(tensor, operand, place);
  const uint32_t element_size = operand.ElementSize();
  if (element_size != 0 && tensor.dtype.bits * tensor.dtype.lanes != element_size * 8) {
    place.Refuse("elements of " + std::to_string(tensor.dtype.bits) + " bits, " +
                 std::to_string(element_size * 8) + " expected");
  }
  return {static_cast<char*>(tensor.data) + tensor.byte_offset,
          static_cast<size_t>(DataSize(tensor, place))};
}

}  // namespace nnfarm
