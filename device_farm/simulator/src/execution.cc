// The run of an execution and what is asked about it.
#include "execution.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <thread>

#include "device_state.h"

namespace nnsim {

Status Execution::Begin() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (state_ == State::kComputing || (state_ == State::kDone && !reusable_)) {
    return BadState("the execution has been started");
  }
  for (const auto* arguments : {&inputs_, &outputs_}) {
    for (const Argument& argument : *arguments) {
      NNSIM_REQUIRE(argument.set, "not every input and output is set");
    }
  }
  state_ = State::kComputing;
  return Ok();
}

Status Execution::Compute() {
  Status status = CheckMemories();
  if (status.ok()) status = Run();
  for (const Argument& output : outputs_) {
    if (output.mapping != nullptr) output.mapping->SetInitialized(status.ok());
  }
  Abandon();
  return status;
}

void Execution::Abandon() {
  std::lock_guard<std::mutex> lock(mutex_);
  state_ = State::kDone;
}

Status Execution::CheckMemories() const {
  for (const Argument& input : inputs_) {
    if (input.mapping != nullptr && !input.mapping->initialized()) {
      return {ANEURALNETWORKS_OP_FAILED, "an input's memory has no value yet"};
    }
  }
  return Ok();
}

Status Execution::StartDevices(Clock::time_point deadline, double* slow_us) const {
  const std::vector<size_t>& placement = compilation_->placement();
  for (size_t device : std::set<size_t>(placement.begin(), placement.end())) {
    NNSIM_RETURN_IF_ERROR(StartRun(*compilation_->devices()[device], deadline, slow_us));
  }
  return Ok();
}

double Execution::ModelledMicroseconds(const Interpreter& interpreter) const {
  double total = 0;
  for (const auto& [device, cost] : interpreter.costs()) {
    const auto& devices = compilation_->devices();
    if (device >= devices.size() || devices[device]->reference) continue;
    total += CurrentProfile().latency.Microseconds(cost.operations, cost.macs, cost.bytes);
  }
  return total * HeatUp(total);
}

std::vector<Tensor> Execution::BindInputs() {
  std::vector<Tensor> inputs;
  for (Argument& argument : inputs_) {
    Tensor tensor = argument.tensor;
    tensor.data = static_cast<uint8_t*>(argument.buffer);
    if (reinterpret_cast<uintptr_t>(argument.buffer) % alignof(uint32_t) != 0) {
      argument.aligned.resize(argument.length / sizeof(uint32_t) + 1);
      std::memcpy(argument.aligned.data(), argument.buffer, argument.length);
      tensor.data = reinterpret_cast<uint8_t*>(argument.aligned.data());
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

Status Execution::FinishInTime(Clock::time_point start, Clock::time_point deadline,
                               double modelled_us) {
  const auto modelled = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double, std::micro>(modelled_us));
  std::this_thread::sleep_until(std::min(start + modelled, deadline));
  const Clock::time_point end = Clock::now();
  duration_ns_ = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count());
  if (end >= deadline) {
    return {ANEURALNETWORKS_MISSED_DEADLINE_TRANSIENT, "the execution took too long"};
  }
  return Ok();
}

Status Execution::Run() {
  const Clock::time_point start = Clock::now();
  // A timeout too far away to be represented is none.
  const bool limited = timeout_ns_ != 0 && timeout_ns_ < static_cast<uint64_t>(INT64_MAX) / 2;
  const Clock::time_point deadline =
      limited ? start + std::chrono::nanoseconds(timeout_ns_) : Clock::time_point::max();
  double slow_us = 0;
  NNSIM_RETURN_IF_ERROR(StartDevices(deadline, &slow_us));
  Interpreter interpreter(compilation_->pool(), &compilation_->placement(),
                          &compilation_->devices(), std::chrono::nanoseconds(loop_timeout_ns_));
  std::vector<OwnedTensor> results;
  NNSIM_RETURN_IF_ERROR(interpreter.Run(compilation_->model(), BindInputs(), &results));
  const double modelled_us = slow_us + ModelledMicroseconds(interpreter);
  NNSIM_RETURN_IF_ERROR(FinishInTime(start, deadline, modelled_us));
  return StoreOutputs(results);
}

Status Execution::StoreOutputs(const std::vector<OwnedTensor>& results) {
  Status status;
  for (size_t i = 0; i < results.size(); ++i) {
    Argument& output = outputs_[i];
    const Tensor& result = results[i].tensor;
    NNSIM_REQUIRE(Admits(output.tensor.dims, result.dims),
                  "output " + std::to_string(i) + " is " + ToString(result.dims) +
                      ", the caller said " + ToString(output.tensor.dims));
    output.insufficient = output.length < result.size_bytes();
    if (output.insufficient) {
      status = {ANEURALNETWORKS_OUTPUT_INSUFFICIENT_SIZE,
                "output " + std::to_string(i) + " needs " + std::to_string(result.size_bytes()) +
                    " bytes, the buffer has " + std::to_string(output.length)};
    } else if (output.buffer != nullptr) {
      std::copy_n(result.data, result.size_bytes(), static_cast<uint8_t*>(output.buffer));
    }
    output.shape = result.dims;
  }
  return status;
}

Status Execution::FindOutput(int32_t index, const Argument** output) const {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (state_ != State::kDone) return BadState("the execution is not done");
  }
  NNSIM_REQUIRE(index >= 0 && static_cast<size_t>(index) < outputs_.size(), "no such output");
  *output = &outputs_[static_cast<size_t>(index)];
  return Ok();
}

Status Execution::OutputRank(int32_t index, uint32_t* rank) const {
  const Argument* output = nullptr;
  NNSIM_RETURN_IF_ERROR(FindOutput(index, &output));
  *rank = static_cast<uint32_t>(output->shape.size());
  if (output->insufficient) return {ANEURALNETWORKS_OUTPUT_INSUFFICIENT_SIZE, "see the rank"};
  return Ok();
}

Status Execution::OutputDimensions(int32_t index, uint32_t* dimensions) const {
  const Argument* output = nullptr;
  NNSIM_RETURN_IF_ERROR(FindOutput(index, &output));
  NNSIM_REQUIRE(!output->shape.empty(), "a scalar has no dimensions");
  std::copy(output->shape.begin(), output->shape.end(), dimensions);
  if (output->insufficient) return {ANEURALNETWORKS_OUTPUT_INSUFFICIENT_SIZE, "see the shape"};
  return Ok();
}

Status Execution::Duration(uint64_t* duration_ns) const {
  std::lock_guard<std::mutex> lock(mutex_);
  *duration_ns = UINT64_MAX;
  if (state_ != State::kDone) return BadState("the execution is not done");
  if (!measure_) return BadState("timing was not asked for");
  *duration_ns = duration_ns_;
  return Ok();
}

}  // namespace nnsim
