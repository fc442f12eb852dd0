// The constants file of a package, as NNAPI memory where the driver takes it, else by pointer.
#ifndef NNFARM_PLAYER_WEIGHTS_H_
#define NNFARM_PLAYER_WEIGHTS_H_

#include <string>

#include "base/file.h"
#include "player/encoded_model.h"
#include "player/handles.h"

namespace nnfarm {

// Must outlive the model and its executions: NNAPI reads constants out of it at any time.
class Weights {
 public:
  // Opens `directory`/file and checks its size. Throws ffi::Error ("ValueError") for a wrong file.
  Weights(const nnapi::Api& api, const std::string& directory, const WeightsReference& reference);

  // Whether operands are given as parts of NNAPI memory on the file.
  bool is_nnapi_memory() const { return memory_ != nullptr; }
  // From now on operands are given by pointer; NNAPI copies them into memory any driver takes. No
  // model made with the memory may be left.
  void UsePointers();

  // Gives operand `index` its value. Throws NnapiError (nnapi.model_refused).
  void SetOperand(nnapi::Model* model, int32_t index, const EncodedOperand& operand) const;

 private:
  const nnapi::Api& api_;
  std::string path_;
  File file_;
  Owned<nnapi::Memory> memory_;
  MappedFile mapped_;  // used only without memory
};

}  // namespace nnfarm

#endif  // NNFARM_PLAYER_WEIGHTS_H_
