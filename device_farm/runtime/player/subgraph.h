// One encoded subgraph: compiled once, then executed as often as asked.
#ifndef NNFARM_PLAYER_SUBGRAPH_H_
#define NNFARM_PLAYER_SUBGRAPH_H_

#include <tvm/ffi/function.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "player/binding.h"
#include "player/device_choice.h"
#include "player/encoded_model.h"
#include "player/handles.h"
#include "player/settings.h"
#include "player/weights.h"

namespace nnfarm {

// Safe to use from several threads: calls of one subgraph wait for each other.
class Subgraph {
 public:
  Subgraph(EncodedModel encoded, PlayerSettings settings);

  const std::string& symbol() const { return encoded_.symbol; }

  // Compiles unless that is done. Throws NnapiError; ffi::Error for a damaged package.
  void Compile();

  // Executes on `inputs` then `outputs` as DLTensors on the CPU, compiling first if need be.
  // Throws NnapiError; ffi::Error ("ValueError") for tensors that do not fit.
  void Run(tvm::ffi::PackedArgs tensors);

  // The members of the runner's `subgraph` event; only symbol and content before it is
  // compiled.
  JsonObject Describe() const;

 private:
  // An execution that keeps the buffers it was given (reusable ones, from level 5).
  struct BoundExecution {
    std::vector<Binding> bindings;
    Owned<nnapi::Execution> execution;
  };

  void CompileLocked();
  void BuildAndCompile();
  bool MayRefuseWeights(const tvm::ffi::Error& error) const;
  void CreateCompilation();
  void RequireComputeCall() const;
  bool UsesBurst() const;
  void CreateBurst(nnapi::Compilation* compilation);
  bool CanReuseExecutions() const;
  // Fills `bindings_`.
  void Bind(const tvm::ffi::PackedArgs& tensors);
  // The execution bound to `bindings_`, made if there is none.
  nnapi::Execution* ReusableExecution(const tvm::ffi::PackedArgs& tensors);
  Owned<nnapi::Execution> MakeExecution(const tvm::ffi::PackedArgs& tensors);
  void SetInput(nnapi::Execution* execution, size_t index, const DLTensor& tensor);
  void Compute(nnapi::Execution* execution);
  // Adds the subgraph's name to an NnapiError.
  template <typename Action>
  void Naming(Action action);

  const EncodedModel encoded_;
  const PlayerSettings settings_;
  const bool has_dynamic_operand_;
  mutable std::mutex mutex_;
  // Declared in the order of need: destroyed executions first, memory last.
  std::shared_ptr<const nnapi::Api> api_;
  std::optional<Weights> weights_;
  std::optional<Owned<nnapi::Model>> model_;
  std::optional<Owned<nnapi::Compilation>> compilation_;
  std::optional<Owned<nnapi::Burst>> burst_;
  std::vector<BoundExecution> executions_;
  size_t oldest_execution_ = 0;
  std::vector<Binding> bindings_;
  std::vector<uint32_t> shape_;  // of a dynamic input while it is set
  std::vector<ChosenDevice> devices_;
  double compile_us_ = 0.0;
};

}  // namespace nnfarm

#endif  // NNFARM_PLAYER_SUBGRAPH_H_
