#include "api/session.h"

#include <tvm/ffi/container/array.h>

#include "api/library.h"
#include "api/run_error.h"
#include "base/ffi_call.h"

namespace nnfarm {
namespace {

constexpr int64_t kPooledAllocator = 2;  // tvm::runtime::memory::AllocatorType::kPooled

ffi::Module StartMachine(const ffi::Module& library) {
  const auto machine = Call(FunctionOf(library, "vm_load_executable")).cast<ffi::Module>();
  // Device type, device id, allocator; TVM runs shape functions on the same CPU device.
  Call(FunctionOf(machine, "vm_initialization"), static_cast<int64_t>(kDLCPU), int64_t{0},
       kPooledAllocator);
  return machine;
}

}  // namespace

Session::Session(const std::string& path, const std::string& entry)
    : library_(LoadLibrary(path)),
      machine_(StartMachine(library_)),
      entry_(FunctionOf(machine_, entry)) {}

std::vector<ffi::Tensor> Session::Run(const std::vector<ffi::Tensor>& inputs) const {
  const std::vector<ffi::AnyView> arguments(inputs.begin(), inputs.end());
  const ffi::Any result = CallPacked(entry_, arguments.data(), arguments.size());
  std::vector<ffi::Tensor> outputs;
  if (const auto tensor = result.as<ffi::Tensor>()) {
    outputs.push_back(*tensor);
  } else if (const auto tuple = result.as<ffi::Array<ffi::Any>>()) {
    for (const ffi::Any& item : *tuple) {
      const auto output = item.as<ffi::Tensor>();
      if (!output.has_value()) ThrowFailed("the model returned something else than tensors");
      outputs.push_back(*output);
    }
  } else {
    ThrowFailed("the model returned something else than tensors");
  }
  return outputs;
}

void Session::SetInstrument(const ffi::Function& instrument) const {
  Call(FunctionOf(machine_, "set_instrument"), instrument);
}

}  // namespace nnfarm
