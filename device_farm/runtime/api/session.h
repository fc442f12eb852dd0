// A loaded model library: TVM's virtual machine on the CPU device.
#ifndef NNFARM_API_SESSION_H_
#define NNFARM_API_SESSION_H_

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>

#include <string>
#include <vector>

namespace nnfarm {

class Session {
 public:
  // Loads the library at `path` and prepares `entry`. Throws ffi::Error.
  Session(const std::string& path, const std::string& entry);

  // One inference. Throws ffi::Error, of kind NnapiError where NNAPI did not do it.
  std::vector<tvm::ffi::Tensor> Run(const std::vector<tvm::ffi::Tensor>& inputs) const;

  // Has the machine call `instrument` before and after each of its calls.
  void SetInstrument(const tvm::ffi::Function& instrument) const;

 private:
  // The machine keeps the library and the functions keep neither: all three stay.
  tvm::ffi::Module library_;
  tvm::ffi::Module machine_;
  tvm::ffi::Function entry_;
};

}  // namespace nnfarm

#endif  // NNFARM_API_SESSION_H_
