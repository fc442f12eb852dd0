// Sorting for the CPU parts of packages. TVM compiles sort, argsort and topk to calls of functions by
// name, which it has in a library of extras; a phone gets these instead, unless that is there.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

namespace nnfarm {
namespace {

namespace ffi = tvm::ffi;

// One axis of a dense tensor.
struct Axis {
  Axis(const DLTensor& tensor, int axis) {
    if (axis < 0) axis += tensor.ndim;
    if (axis < 0 || axis >= tensor.ndim) TVM_FFI_THROW(ValueError) << "No axis " << axis;
    for (int i = 0; i < tensor.ndim; ++i) {
      (i < axis ? before : i > axis ? after : length) *= tensor.shape[i];
    }
  }

  int64_t before = 1;
  int64_t length = 1;
  int64_t after = 1;
};

// Calls `visit` with a null pointer of the element type.
template <typename Visit>
void WithType(DLDataType type, Visit visit) {
  const int code = type.code * 1000 + type.bits;
  switch (type.lanes == 1 ? code : -1) {
    case kDLFloat * 1000 + 32: return visit(static_cast<float*>(nullptr));
    case kDLFloat * 1000 + 64: return visit(static_cast<double*>(nullptr));
    case kDLInt * 1000 + 8: return visit(static_cast<int8_t*>(nullptr));
    case kDLInt * 1000 + 32: return visit(static_cast<int32_t*>(nullptr));
    case kDLInt * 1000 + 64: return visit(static_cast<int64_t*>(nullptr));
    case kDLUInt * 1000 + 8: return visit(static_cast<uint8_t*>(nullptr));
    default: TVM_FFI_THROW(TypeError) << "Cannot sort elements of type code " << code;
  }
}

template <typename T>
T* Data(const DLTensor& tensor) {
  return reinterpret_cast<T*>(static_cast<char*>(tensor.data) + tensor.byte_offset);
}

// Puts the first `count` elements of each line in order: values, places or both; equal ones stay in
// the order they had.
void Sort(const DLTensor& input, const DLTensor* values, const DLTensor* places, int64_t count,
          int axis_index, bool ascending) {
  const Axis axis(input, axis_index);
  if (count < 1 || count > axis.length) count = axis.length;
  std::vector<int64_t> order(axis.length);
  WithType(input.dtype, [&](auto* of_element) {
    using Element = std::remove_pointer_t<decltype(of_element)>;
    for (int64_t line = 0; line < axis.before * axis.after; ++line) {
      const int64_t outer = line / axis.after, inner = line % axis.after;
      const Element* source = Data<Element>(input) + outer * axis.length * axis.after + inner;
      const auto value = [&](int64_t at) { return source[at * axis.after]; };
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(order.begin(), order.begin() + count, order.end(),
                        [&](int64_t a, int64_t b) {
                          if (value(a) == value(b)) return a < b;
                          return ascending ? value(a) < value(b) : value(a) > value(b);
                        });
      const int64_t target = outer * count * axis.after + inner;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t to = target + i * axis.after;
        if (values != nullptr) Data<Element>(*values)[to] = value(order[i]);
        if (places == nullptr) continue;
        WithType(places->dtype, [&](auto* of_place) {
          using Place = std::remove_pointer_t<decltype(of_place)>;
          Data<Place>(*places)[to] = static_cast<Place>(order[i]);
        });
      }
    }
  });
}

// (input, places, axis, ascending)
void ArgSort(ffi::PackedArgs args, ffi::Any*) {
  Sort(*args[0].cast<DLTensor*>(), nullptr, args[1].cast<DLTensor*>(), 0, args[2].cast<int>(),
       args[3].cast<bool>());
}

// (input, values, axis, ascending)
void SortValues(ffi::PackedArgs args, ffi::Any*) {
  Sort(*args[0].cast<DLTensor*>(), args[1].cast<DLTensor*>(), nullptr, 0, args[2].cast<int>(),
       args[3].cast<bool>());
}

// (input, one output or two, count, axis, "both" or "values" or "indices", ascending)
void TopK(ffi::PackedArgs args, ffi::Any*) {
  const int rest = args.size() - 4;
  const auto kind = args[rest + 2].cast<std::string>();
  const DLTensor* values = kind == "indices" ? nullptr : args[1].cast<DLTensor*>();
  const DLTensor* places = kind == "values" ? nullptr : args[rest - 1].cast<DLTensor*>();
  Sort(*args[0].cast<DLTensor*>(), values, places, args[rest].cast<int>(),
       args[rest + 1].cast<int>(), args[rest + 3].cast<bool>());
}

void Register(const char* name, void (*function)(ffi::PackedArgs, ffi::Any*)) {
  if (ffi::Function::GetGlobal(name).has_value()) return;
  tvm::ffi::reflection::GlobalDef().def_packed(name, function);
}

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  Register("tvm.contrib.sort.topk", TopK);
  Register("tvm.contrib.sort.argsort", ArgSort);
  Register("tvm.contrib.sort.sort", SortValues);
}

}  // namespace nnfarm
