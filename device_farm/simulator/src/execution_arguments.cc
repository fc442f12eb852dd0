// Arguments and settings of an execution: all that comes before it runs.
#include <algorithm>

#include "execution.h"
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
    const MemoryRole role{compilation_, input, static_cast<uint32_t>(index)};
    NNSIM_REQUIRE(index >= 0 && mapping->Allows(role),
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

}  // namespace nnsim
