// One operation with its operands bound: the view an operation's prepare and execute have.
#ifndef DEVICE_FARM_SIMULATOR_SRC_CALL_H_
#define DEVICE_FARM_SIMULATOR_SRC_CALL_H_

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "status.h"
#include "tensor.h"

namespace nnsim {

// Prepare runs twice: when the model is finished, with whatever is known, and in each execution
// with everything. Reading a value that is not known yet returns 1 and marks the call as deferred;
// whatever prepare answered is then ignored until the execution.
class Call {
 public:
  Call(std::vector<Tensor*> inputs, std::vector<Tensor*> outputs)
      : inputs_(std::move(inputs)), outputs_(std::move(outputs)) {}

  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return outputs_.size(); }
  const Tensor& In(size_t i) const { return *inputs_[i]; }
  const Tensor& Out(size_t i = 0) const { return *outputs_[i]; }
  const Dims& Shape(size_t i) const { return inputs_[i]->dims; }
  uint32_t Rank(size_t i) const { return static_cast<uint32_t>(inputs_[i]->dims.size()); }
  // True when input i was given and is not an omitted optional operand.
  bool Has(size_t i) const { return i < inputs_.size() && !inputs_[i]->omitted; }

  int32_t Int(size_t i) { return Scalar<int32_t>(i); }
  int64_t Int64(size_t i) { return Scalar<int64_t>(i); }  // of an extension
  bool Bool(size_t i) { return Scalar<uint8_t>(i) != 0; }
  // A FLOAT32 or FLOAT16 scalar.
  float Real(size_t i);
  // All numbers of a TENSOR_INT32.
  std::vector<int32_t> Ints(size_t i);

  void SetOut(size_t i, Dims dims) { outputs_[i]->dims = std::move(dims); }
  // Multiply-accumulates of the call, for the latency model; set by prepare.
  void SetMacs(double macs) { macs_ = macs; }
  double macs() const { return macs_; }
  // For rules that shapes and values decide: the feature level this call needs.
  void Need(int level) { needed_level_ = level > needed_level_ ? level : needed_level_; }
  int needed_level() const { return needed_level_; }
  bool deferred() const { return deferred_; }

  // Execute only: input i as real numbers, whatever its type.
  const float* Values(size_t i);
  // Execute only: where output i is written as real numbers; stored by Finish.
  float* Results(size_t i = 0);
  // Execute only: the bytes as they are.
  template <typename T>
  const T* Data(size_t i) const {
    return reinterpret_cast<const T*>(inputs_[i]->data);
  }
  template <typename T>
  T* OutData(size_t i = 0) const {
    return reinterpret_cast<T*>(outputs_[i]->data);
  }
  // Values derived from input i, kept when it is a constant.
  const std::vector<float>& Derived(size_t i, const std::string& slot,
                                    const ConstantCache::Maker& make);
  // Set by prepare when the outputs' shapes follow from the values computed: execute then calls
  // AllocateOut for each output before it writes it.
  void SetDynamic() { dynamic_ = true; }
  bool dynamic() const { return dynamic_; }
  using Allocator = std::function<void(size_t, Dims)>;
  void SetAllocator(Allocator allocator) { allocator_ = std::move(allocator); }
  void AllocateOut(size_t i, Dims dims) { allocator_(i, std::move(dims)); }
  // Stores what was written through Results.
  void Finish();

 private:
  template <typename T>
  T Scalar(size_t i) {
    if (inputs_[i]->data == nullptr) {
      deferred_ = true;
      return 1;
    }
    T value;
    std::memcpy(&value, inputs_[i]->data, sizeof value);
    return value;
  }

  std::vector<Tensor*> inputs_;
  std::vector<Tensor*> outputs_;
  // A deque and a map: growing must not move what was handed out.
  std::deque<std::vector<float>> scratch_;
  std::map<std::pair<size_t, std::string>, std::vector<float>> derived_;
  std::vector<std::pair<size_t, const float*>> pending_;
  Allocator allocator_;
  double macs_ = 0;
  bool dynamic_ = false;
  int needed_level_ = 1;
  bool deferred_ = false;
};

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_CALL_H_
