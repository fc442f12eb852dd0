// A call's tensors as the memory NNAPI reads and writes.
#ifndef NNFARM_PLAYER_BINDING_H_
#define NNFARM_PLAYER_BINDING_H_

#include <dlpack/dlpack.h>
#include <tvm/ffi/function.h>

#include <cstddef>
#include <string>

#include "player/encoded_model.h"

namespace nnfarm {

// Memory of one input or output in a call.
struct Binding {
  void* data;
  size_t size;

  bool operator==(const Binding& other) const { return data == other.data && size == other.size; }
};

// Throws ffi::Error ("ValueError") saying `place` and `reason`.
[[noreturn]] void RefuseTensor(const std::string& place, const std::string& reason);

// The tensor that is argument `index`. Throws ffi::Error ("ValueError") for anything else.
const DLTensor& TensorAt(const tvm::ffi::PackedArgs& arguments, size_t index);

// The memory of `tensor`, which must be compact, on the CPU and of the operand's shape and element
// size. Throws ffi::Error ("ValueError") naming `symbol` and the argument's index; the words are put
// together only then, since this is done for every argument of every inference.
Binding BindTensor(const DLTensor& tensor, const EncodedOperand& operand,
                   const std::string& symbol, size_t index);

}  // namespace nnfarm

#endif  // NNFARM_PLAYER_BINDING_H_
