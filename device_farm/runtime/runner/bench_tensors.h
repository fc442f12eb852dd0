// A kernel's tensors: filled, and compared after two schedules have computed.
#ifndef NNFARM_RUNNER_BENCH_TENSORS_H_
#define NNFARM_RUNNER_BENCH_TENSORS_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/container/tensor.h>

#include <cstdint>
#include <vector>

#include "runner/bench_file.h"

namespace nnfarm {

class BenchTensors {
 public:
  // Throws RunError (failed) when there is no memory.
  explicit BenchTensors(const std::vector<BenchTensor>& tensors);

  // Gives every tensor, results among them, the numbers of the beginning: no kernel stumbles over
  // them, and indices are in range everywhere.
  void Fill();

  // The bytes of all tensors.
  std::vector<std::vector<uint8_t>> Copy() const;

  // Whether the tensors hold what another schedule had left: floats may be summed in another
  // order, and integers be one step apart.
  bool Agree(const std::vector<std::vector<uint8_t>>& theirs) const;

  const std::vector<tvm::ffi::AnyView>& arguments() const { return arguments_; }

 private:
  std::vector<tvm::ffi::Tensor> tensors_;
  std::vector<tvm::ffi::AnyView> arguments_;
};

}  // namespace nnfarm

#endif  // NNFARM_RUNNER_BENCH_TENSORS_H_
