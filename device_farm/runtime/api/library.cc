#include "api/library.h"

#include "base/ffi_call.h"

namespace nnfarm {

ffi::Module LoadLibrary(const std::string& path) {
  return CallGlobal("ffi.ModuleLoadFromFile", ffi::String(path)).cast<ffi::Module>();
}

ffi::Function FunctionOf(const ffi::Module& module, const std::string& name) {
  const ffi::Any found =
      CallGlobal("ffi.ModuleGetFunction", module, ffi::String(name), /*query_imports=*/true);
  const auto function = found.as<ffi::Function>();
  if (!function.has_value() || *function == nullptr) {  // None may be read as a null function
    throw ffi::Error("ValueError", "the library has no function " + name, "");
  }
  return *function;
}

}  // namespace nnfarm
