// Loading a compiled library, and its functions.
#ifndef NNFARM_API_LIBRARY_H_
#define NNFARM_API_LIBRARY_H_

#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>

#include <string>

namespace nnfarm {

// The library at `path`. Throws ffi::Error.
tvm::ffi::Module LoadLibrary(const std::string& path);

// A function of `module`, which must outlive it. Throws ffi::Error where there is none.
tvm::ffi::Function FunctionOf(const tvm::ffi::Module& module, const std::string& name);

}  // namespace nnfarm

#endif  // NNFARM_API_LIBRARY_H_
