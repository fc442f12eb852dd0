// Runs a finished model, operation by operation.
#ifndef DEVICE_FARM_SIMULATOR_SRC_INTERPRETER_H_
#define DEVICE_FARM_SIMULATOR_SRC_INTERPRETER_H_

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "model.h"
#include "profile.h"

namespace nnsim {

using Clock = std::chrono::steady_clock;

// Keeps buffers between executions: fresh pages cost more than most operations.
class BufferPool {
 public:
  using Buffer = std::unique_ptr<uint8_t[]>;

  std::pair<size_t, Buffer> Take(size_t size);
  void Give(size_t capacity, Buffer buffer);

 private:
  std::mutex mutex_;
  std::multimap<size_t, Buffer> free_;
};

// A tensor with the buffer behind it. The buffer returns to its pool with the last owner.
struct OwnedTensor {
  Tensor tensor;
  std::shared_ptr<uint8_t> buffer;
};

// What an execution cost on each device, for the latency model.
struct Cost {
  double operations = 0;
  double macs = 0;
  double bytes = 0;
};

class Interpreter {
 public:
  // `placement`: for each operation of the outermost model the index into `devices`; costs are
  // counted by that index. The pointers outlive the interpreter.
  Interpreter(std::shared_ptr<BufferPool> pool, const std::vector<size_t>* placement,
              const std::vector<const DeviceSpec*>* devices, Clock::duration loop_timeout)
      : pool_(std::move(pool)),
        placement_(placement),
        devices_(devices),
        loop_timeout_(loop_timeout) {}

  // `inputs` have their data; `outputs` are filled in the model's order.
  Status Run(const Model& model, const std::vector<Tensor>& inputs,
             std::vector<OwnedTensor>* outputs);

  const std::map<size_t, Cost>& costs() const { return costs_; }

 private:
  struct Frame;

  Status RunOperation(const Operation& operation, Frame* frame, size_t device);
  const DeviceSpec& SpecOf(size_t device) const;
  Status RunIf(const Operation& operation, Frame* frame);
  Status RunWhile(const Operation& operation, Frame* frame);
  Status StoreResults(const Operation& operation, std::vector<OwnedTensor> results, Frame* frame);
  std::shared_ptr<uint8_t> Allocate(size_t size);

  std::shared_ptr<BufferPool> pool_;
  const std::vector<size_t>* placement_;
  const std::vector<const DeviceSpec*>* devices_;
  Clock::duration loop_timeout_;
  std::map<size_t, Cost> costs_;
  int depth_ = 0;
};

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_INTERPRETER_H_
