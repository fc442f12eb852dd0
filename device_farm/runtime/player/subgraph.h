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
#include "player/device_choice.h"
#include "player/encoded_model.h"
#include "player/executor.h"
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

  // Has NNAPI measure the runs that follow, where it can; nothing before it is compiled.
  void MeasureDurations(bool measure);

  // `symbol`, and what NNAPI says the last run took.
  JsonObject DescribeDurations() const;

  // The members of the runner's `subgraph` event; only symbol and content before it is
  // compiled.
  JsonObject Describe() const;

 private:
  void CompileLocked();
  void BuildAndCompile();
  bool MayRefuseWeights(const tvm::ffi::Error& error) const;
  // Adds the subgraph's name to an NnapiError.
  template <typename Action>
  void Naming(Action action);

  const EncodedModel encoded_;
  const PlayerSettings settings_;
  mutable std::mutex mutex_;
  // Declared in the order of need: destroyed executor first, memory last.
  std::shared_ptr<const nnapi::Api> api_;
  std::optional<Weights> weights_;
  std::optional<Owned<nnapi::Model>> model_;
  std::optional<Owned<nnapi::Compilation>> compilation_;
  std::optional<Executor> executor_;  // there once all is compiled
  std::vector<ChosenDevice> devices_;
  double compile_us_ = 0.0;
};

}  // namespace nnfarm

#endif  // NNFARM_PLAYER_SUBGRAPH_H_
