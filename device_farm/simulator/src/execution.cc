#include "execution.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <thread>

#include "device_state.h"
#include "operand_rules.h"

namespace nnsim {

Execution::Execution(std::shared_ptr<const Compilation> compilation)
    : compilation_(std::move(compilation)),
      inputs_(compilation_->model().inputs().size()),
      outputs_(compilation_->model().outputs().size()) {}

Status Execution::CheckPreparing() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return state_ == State::kPreparing ? Ok() : BadState("the execution has been started");
}

Status Execution::CheckLength(const Argument& argument, bool input) const {
  if (argument.buffer == nullptr) return Ok();
  const size_t needed = argument.tensor.size_bytes();
  if (!argument.tensor.fully_known()) {
    NNSIM_REQUIRE(!input, "an input needs its whole shape");
    return Ok();
  }
  NNSIM_REQUIRE(argument.length == needed || (padding_ && argument.length > needed),
                std::to_string(argument.length) + " bytes, " + std::to_string(needed) +
                    " expected");
  return Ok();
}

Status Execution::Set(std::vector<Argument>* arguments, const std::vector<uint32_t>& operands,
                      int32_t index, const ANeuralNetworksOperandType* type, void* buffer,
                      size_t length) {
  NNSIM_RETURN_IF_ERROR(CheckPreparing());
  NNSIM_REQUIRE(index >= 0 && static_cast<size_t>(index) < operands.size(), "no such argument");
  Argument& slot = (*arguments)[static_cast<size_t>(index)];
  if (slot.set) return BadState("the argument is set already");
  if (buffer == nullptr && length != 0) return UnexpectedNull("a null buffer with a length");
  Argument argument;
  argument.tensor =
      compilation_->model().operands()[operands[static_cast<size_t>(index)]].tensor;
  if (type != nullptr) {
    Tensor given;
    NNSIM_RETURN_IF_ERROR(ToTensor(*type, kMaxFeatureLevel, &given));
    NNSIM_REQUIRE(given.type == argument.tensor.type && given.scale == argument.tensor.scale &&
                      given.zero_point == argument.tensor.zero_point,
                  "the type is not that of the model's operand");
    NNSIM_REQUIRE(given.dims.empty() || Admits(argument.tensor.dims, given.dims),
                  "the shape " + ToString(given.dims) + " is not one of " +
                      ToString(argument.tensor.dims));
    if (!given.dims.empty()) argument.tensor.dims = given.dims;
  }
  argument.set = true;
  argument.buffer = buffer;
  argument.length = length;
  NNSIM_RETURN_IF_ERROR(CheckLength(argument, arguments == &inputs_));
  slot = std::move(argument);
  return Ok();
}

Status Execution::SetInput(int32_t index, const ANeuralNetworksOperandType* type,
                           const void* buffer, size_t length) {
  NNSIM_RETURN_IF_ERROR(Set(&inputs_, compilation_->model().inputs(), index, type,
                            const_cast<void*>(buffer), length));
  Argument& argument = inputs_[static_cast<size_t>(index)];
  argument.tensor.omitted = buffer == nullptr;
  return Ok();
}

Status Execution::SetOutput(int32_t index, const ANeuralNetworksOperandType* type, void* buffer,
                            size_t length) {
  return Set(&outputs_, compilation_->model().outputs(), index, type, buffer, length);
}

Status Execution::SetFromMapping(bool input, int32_t index, const ANeuralNetworksOperandType* type,
                                 std::shared_ptr<Mapping> mapping, size_t offset, size_t length) {
  ANeuralNetworksOperandType known{};
  if (mapping->opaque()) {
    NNSIM_REQUIRE(offset == 0 && length == 0, "memory of a descriptor is used as a whole");
    NNSIM_REQUIRE(index >= 0 && mapping->Allows({compilation_, input, static_cast<uint32_t>(index)}),
                  "the memory's descriptor has no such role");
    const Model& model = compilation_->model();
    const uint32_t operand = (input ? model.inputs() : model.outputs())[static_cast<size_t>(index)];
    const Tensor& tensor = model.operands()[operand].tensor;
    known = {tensor.type, static_cast<uint32_t>(mapping->dims().size()), mapping->dims().data(),
             tensor.scale, tensor.zero_point};
    if (type == nullptr) type = &known;
    length = mapping->size();
  }
  NNSIM_REQUIRE(mapping->Contains(offset, length), "the argument lies outside of the memory");
  uint8_t* data = mapping->data() + offset;
  NNSIM_RETURN_IF_ERROR(input ? SetInput(index, type, data, length)
                              : SetOutput(index, type, data, length));
  (input ? inputs_ : outputs_)[static_cast<size_t>(index)].mapping = std::move(mapping);
  return Ok();
}

Status Execution::SetMeasureTiming(bool measure) {
  NNSIM_RETURN_IF_ERROR(CheckPreparing());
  NNSIM_REQUIRE(!measure || compilation_->one_device(),
                "timing needs a compilation for exactly one device");
  measure_ = measure;
  return Ok();
}

Status Execution::SetTimeout(uint64_t duration_ns) {
  NNSIM_RETURN_IF_ERROR(CheckPreparing());
  NNSIM_REQUIRE(duration_ns == 0 || compilation_->one_device(),
                "a timeout needs a compilation for exactly one device");
  timeout_ns_ = duration_ns;
  return Ok();
}

Status Execution::SetLoopTimeout(uint64_t duration_ns) {
  NNSIM_RETURN_IF_ERROR(CheckPreparing());
  loop_timeout_ns_ = std::min(duration_ns, kMaximumLoopTimeoutNs);
  return Ok();
}

Status Execution::SetReusable(bool reusable) {
  NNSIM_RETURN_IF_ERROR(CheckPreparing());
  reusable_ = reusable;
  return Ok();
}

Status Execution::EnablePadding(bool enable) {
  NNSIM_RETURN_IF_ERROR(CheckPreparing());
  const auto is_set = [](const Argument& argument) { return argument.set; };
  if (std::any_of(inputs_.begin(), inputs_.end(), is_set) ||
      std::any_of(outputs_.begin(), outputs_.end(), is_set)) {
    return BadState("padding is chosen before the arguments are set");
  }
  padding_ = enable;
  return Ok();
}

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
