// Computes with a compiled model: on the caller's tensors, or on memory shared with the driver.
#ifndef NNFARM_PLAYER_EXECUTOR_H_
#define NNFARM_PLAYER_EXECUTOR_H_

#include <tvm/ffi/function.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "player/binding.h"
#include "player/durations.h"
#include "player/encoded_model.h"
#include "player/handles.h"
#include "player/settings.h"
#include "player/shared_buffer.h"

namespace nnfarm {

// Used by one thread at a time. Everything it is made of must outlive it.
class Executor {
 public:
  // `limits_time`: NNAPI takes the settings' time limit for this compilation. Throws NnapiError.
  Executor(const nnapi::Api& api, const EncodedModel& encoded, const PlayerSettings& settings,
           nnapi::Compilation* compilation, bool limits_time);

  // Throws NnapiError; ffi::Error ("ValueError") for tensors that do not fit.
  void Run(const tvm::ffi::PackedArgs& tensors);

  // From the next run on, reads what NNAPI says it took, which costs some time; or no more.
  void MeasureDurations(bool measure);
  // Of the last run; empty where none was read.
  const Durations& durations() const { return durations_; }

 private:
  // An execution that keeps the buffers it was given (reusable ones, from level 5).
  struct BoundExecution {
    std::vector<Binding> arguments;
    Owned<nnapi::Execution> execution;
  };

  void RequireCalls() const;
  bool UsesBurst() const;
  void CreateBurst();
  // Fills `tensors_`.
  void Bind(const tvm::ffi::PackedArgs& tensors);
  // Gives every tensor its place in `shared_`.
  void Place();
  void CopyInputs() const;
  void CopyOutputs() const;
  // What NNAPI reads and writes: the tensors or their places.
  const std::vector<Binding>& arguments() const { return shared_.has_value() ? places_ : tensors_; }
  void Execute(const tvm::ffi::PackedArgs& tensors);
  // The execution bound to `arguments()`, made if there is none.
  nnapi::Execution* ReusableExecution(const tvm::ffi::PackedArgs& tensors);
  Owned<nnapi::Execution> MakeExecution(const tvm::ffi::PackedArgs& tensors);
  void SetInput(nnapi::Execution* execution, size_t index, const DLTensor& tensor);
  void SetOutput(nnapi::Execution* execution, size_t index);
  void Compute(nnapi::Execution* execution);
  void ComputeTimed(nnapi::Execution* execution);
  void ComputeAsynchronously(nnapi::Execution* execution);

  const nnapi::Api& api_;
  const EncodedModel& encoded_;
  const PlayerSettings& settings_;
  nnapi::Compilation* const compilation_;
  const bool limits_time_;
  const bool reuses_executions_;
  // Declared in the order of need: destroyed executions first, memory last.
  std::optional<SharedBuffer> shared_;
  std::optional<Owned<nnapi::Burst>> burst_;
  std::vector<BoundExecution> executions_;
  size_t oldest_execution_ = 0;
  std::vector<Binding> tensors_;
  std::vector<Binding> places_;
  std::vector<uint32_t> shape_;  // of a dynamic input while it is set
  bool measures_durations_ = false;
  Durations durations_;
};

}  // namespace nnfarm

#endif  // NNFARM_PLAYER_EXECUTOR_H_
