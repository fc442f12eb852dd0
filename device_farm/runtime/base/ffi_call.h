// Calls across library borders through tvm_ffi's C ABI only.
//
// The player and the runner may carry another C++ standard library than TVM's own libraries do, so
// no C++ exception may cross between them: functions made here catch everything and raise through
// the C ABI, and calls made here ask the C ABI and throw on this side.
#ifndef NNFARM_BASE_FFI_CALL_H_
#define NNFARM_BASE_FFI_CALL_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/string.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>

namespace nnfarm {

namespace ffi = tvm::ffi;

// Wraps `callable(ffi::PackedArgs, ffi::Any*)` so that no exception leaves it.
template <typename Callable>
ffi::Function MakeFunction(Callable callable) {
  TVMFFISafeCallType call = [](void* self, const TVMFFIAny* args, int32_t count,
                               TVMFFIAny* result) -> int {
    TVM_FFI_SAFE_CALL_BEGIN();
    (*static_cast<Callable*>(self))(
        ffi::PackedArgs(reinterpret_cast<const ffi::AnyView*>(args), count),
        reinterpret_cast<ffi::Any*>(result));
    TVM_FFI_SAFE_CALL_END();
  };
  return ffi::Function::FromExternC(new Callable(std::move(callable)), call,
                                    [](void* self) { delete static_cast<Callable*>(self); });
}

// Calls `function` with already packed arguments; throws ffi::Error on this side of the border.
inline ffi::Any CallPacked(const ffi::Function& function, const ffi::AnyView* args, size_t count) {
  ffi::Any result;
  const int status = TVMFFIFunctionCall(
      ffi::details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(function),
      const_cast<TVMFFIAny*>(reinterpret_cast<const TVMFFIAny*>(args)),
      static_cast<int32_t>(count), reinterpret_cast<TVMFFIAny*>(&result));
  if (status != 0) throw ffi::details::MoveFromSafeCallRaised();
  return result;
}

// Calls `function(args...)`; throws ffi::Error on this side of the border.
template <typename... Args>
ffi::Any Call(const ffi::Function& function, const Args&... args) {
  const std::array<ffi::AnyView, sizeof...(Args)> packed{ffi::AnyView(args)...};
  return CallPacked(function, packed.data(), packed.size());
}

// Calls the function registered as `name`.
template <typename... Args>
ffi::Any CallGlobal(const std::string& name, const Args&... args) {
  const std::optional<ffi::Function> function = ffi::Function::GetGlobal(name);
  if (!function.has_value()) {
    throw ffi::Error("RuntimeError", "global function " + name + " is not registered", "");
  }
  return Call(*function, args...);
}

}  // namespace nnfarm

#endif  // NNFARM_BASE_FFI_CALL_H_
