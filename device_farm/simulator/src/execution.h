// One run of a compilation, with its arguments and its state.
#ifndef DEVICE_FARM_SIMULATOR_SRC_EXECUTION_H_
#define DEVICE_FARM_SIMULATOR_SRC_EXECUTION_H_

#include <memory>
#include <mutex>
#include <vector>

#include "compilation.h"
#include "memory.h"

namespace nnsim {

constexpr uint64_t kDefaultLoopTimeoutNs = 2'000'000'000;
constexpr uint64_t kMaximumLoopTimeoutNs = 15'000'000'000;

class Execution {
 public:
  explicit Execution(std::shared_ptr<const Compilation> compilation);

  Status SetInput(int32_t index, const ANeuralNetworksOperandType* type, const void* buffer,
                  size_t length);
  Status SetOutput(int32_t index, const ANeuralNetworksOperandType* type, void* buffer,
                   size_t length);
  // Keeps `mapping` alive as long as the execution.
  Status SetFromMapping(bool input, int32_t index, const ANeuralNetworksOperandType* type,
                        std::shared_ptr<Mapping> mapping, size_t offset, size_t length);
  Status SetMeasureTiming(bool measure);
  Status SetTimeout(uint64_t duration_ns);
  Status SetLoopTimeout(uint64_t duration_ns);
  Status SetReusable(bool reusable);
  Status EnablePadding(bool enable);
  Status CheckPreparing() const;

  // Begin, then Compute: apart, so that an asynchronous run is "computing" when the call returns.
  Status Begin();
  Status Compute();
  // Ends an execution that was begun and cannot run.
  void Abandon();

  Status OutputRank(int32_t index, uint32_t* rank) const;
  Status OutputDimensions(int32_t index, uint32_t* dimensions) const;
  Status Duration(uint64_t* duration_ns) const;
  const Compilation& compilation() const { return *compilation_; }

 private:
  enum class State { kPreparing, kComputing, kDone };

  struct Argument {
    bool set = false;
    Tensor tensor;
    void* buffer = nullptr;
    size_t length = 0;
    std::shared_ptr<Mapping> mapping;
    std::vector<uint32_t> aligned;  // the value again, when the caller's buffer is misaligned
    Dims shape;                     // outputs: as computed
    bool insufficient = false;      // outputs: the buffer was too small
  };

  Status Set(std::vector<Argument>* arguments, const std::vector<uint32_t>& operands, int32_t index,
             const ANeuralNetworksOperandType* type, void* buffer, size_t length);
  Status CheckLength(const Argument& argument, bool input) const;
  Status Run();
  Status CheckMemories() const;
  Status StartDevices(Clock::time_point deadline, double* slow_us) const;
  std::vector<Tensor> BindInputs();
  Status FinishInTime(Clock::time_point start, Clock::time_point deadline, double modelled_us);
  Status StoreOutputs(const std::vector<OwnedTensor>& results);
  double ModelledMicroseconds(const Interpreter& interpreter) const;
  Status FindOutput(int32_t index, const Argument** output) const;

  std::shared_ptr<const Compilation> compilation_;
  mutable std::mutex mutex_;  // guards state_
  State state_ = State::kPreparing;
  std::vector<Argument> inputs_;
  std::vector<Argument> outputs_;
  bool reusable_ = false;
  bool padding_ = false;
  bool measure_ = false;
  uint64_t duration_ns_ = 0;
  uint64_t timeout_ns_ = 0;  // 0: none
  uint64_t loop_timeout_ns_ = kDefaultLoopTimeoutNs;
};

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_EXECUTION_H_
