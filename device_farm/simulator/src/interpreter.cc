#include "interpreter.h"

#include <algorithm>

#include "ops/control_flow.h"

namespace nnsim {

struct Interpreter::Frame {
  const Model* model;
  std::vector<OwnedTensor> values;    // by operand
  std::vector<uint32_t> reads_left;   // by operand
};

namespace {

void RoundToHalf(Tensor* tensor) {
  if (tensor->type != ANEURALNETWORKS_TENSOR_FLOAT32) return;
  auto* values = reinterpret_cast<float*>(tensor->data);
  for (uint64_t i = 0; i < tensor->count(); ++i) values[i] = HalfToFloat(FloatToHalf(values[i]));
}

}  // namespace

std::pair<size_t, BufferPool::Buffer> BufferPool::Take(size_t size) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = free_.lower_bound(size);
  // A buffer many times too large is better kept for its own kind.
  if (found == free_.end() || found->first > 2 * size + 4096) {
    return {size, Buffer(new uint8_t[size])};
  }
  std::pair<size_t, Buffer> taken{found->first, std::move(found->second)};
  free_.erase(found);
  return taken;
}

void BufferPool::Give(size_t capacity, Buffer buffer) {
  std::lock_guard<std::mutex> lock(mutex_);
  free_.emplace(capacity, std::move(buffer));
}

std::shared_ptr<uint8_t> Interpreter::Allocate(size_t size) {
  auto [capacity, buffer] = pool_->Take(std::max<size_t>(size, 1));
  const auto give_back = [pool = pool_, capacity = capacity](uint8_t* bytes) {
    pool->Give(capacity, BufferPool::Buffer(bytes));
  };
  return std::shared_ptr<uint8_t>(buffer.release(), give_back);
}

// Operations inside of a branch or a loop have no device of their own.
const DeviceSpec& Interpreter::SpecOf(size_t device) const {
  static const DeviceSpec none;
  return device < devices_->size() ? *(*devices_)[device] : none;
}

Status Interpreter::RunOperation(const Operation& operation, Frame* frame, size_t device) {
  const DeviceSpec& spec = SpecOf(device);
  if (spec.quirks.fail.count(operation.spec->name) != 0) {
    return {ANEURALNETWORKS_OP_FAILED, "the device fails at run time, as its profile says"};
  }
  std::vector<Tensor*> inputs, outputs;
  std::vector<OwnedTensor> results;
  results.reserve(operation.outputs.size());
  for (uint32_t index : operation.inputs) inputs.push_back(&frame->values[index].tensor);
  for (uint32_t index : operation.outputs) {
    results.push_back(frame->values[index]);
    outputs.push_back(&results.back().tensor);
  }
  Call call(std::move(inputs), std::move(outputs));
  call.SetAllocator([&results, this](size_t i, Dims dims) {
    OwnedTensor& result = results[i];
    result.tensor.dims = std::move(dims);
    result.buffer = Allocate(result.tensor.size_bytes());
    result.tensor.data = result.buffer.get();
  });
  NNSIM_RETURN_IF_ERROR(operation.spec->prepare(call));
  NNSIM_REQUIRE(!call.deferred(), "an operand it needs has no value");
  for (size_t i = 0; i < results.size(); ++i) {
    if (call.dynamic()) continue;
    if (results[i].tensor.size_bytes() > UINT32_MAX) {
      return {ANEURALNETWORKS_OUT_OF_MEMORY, "an output of 4 GiB or more"};
    }
    call.AllocateOut(i, results[i].tensor.dims);
  }
  operation.spec->execute(call);
  call.Finish();
  const bool wrong = spec.quirks.wrong.count(operation.spec->name) != 0;
  for (OwnedTensor& result : results) {
    if (frame->model->relaxed() && spec.relaxed_float16) RoundToHalf(&result.tensor);
    if (wrong) std::fill_n(result.tensor.data, result.tensor.size_bytes(), uint8_t{0});
  }
  Cost& cost = costs_[device];
  cost.operations += 1;
  cost.macs += call.macs();
  for (uint32_t index : operation.inputs) {
    cost.bytes += static_cast<double>(frame->values[index].tensor.size_bytes());
  }
  return StoreResults(operation, std::move(results), frame);
}

Status Interpreter::StoreResults(const Operation& operation, std::vector<OwnedTensor> results,
                                 Frame* frame) {
  for (size_t i = 0; i < results.size(); ++i) {
    OwnedTensor& value = frame->values[operation.outputs[i]];
    NNSIM_REQUIRE(Admits(value.tensor.dims, results[i].tensor.dims),
                  "output " + std::to_string(i) + " is " + ToString(results[i].tensor.dims) +
                      ", the model says " + ToString(value.tensor.dims));
    value = std::move(results[i]);
  }
  for (uint32_t index : operation.inputs) {
    if (--frame->reads_left[index] == 0) frame->values[index].buffer.reset();
  }
  return Ok();
}

Status Interpreter::RunIf(const Operation& operation, Frame* frame) {
  const Tensor& condition = frame->values[operation.inputs[0]].tensor;
  NNSIM_REQUIRE(condition.data != nullptr && condition.count() == 1, "the condition is no scalar");
  const uint32_t branch = operation.inputs[*condition.data != 0 ? 1 : 2];
  std::vector<Tensor> inputs;
  for (size_t i = 3; i < operation.inputs.size(); ++i) {
    inputs.push_back(frame->values[operation.inputs[i]].tensor);
  }
  std::vector<OwnedTensor> results;
  NNSIM_RETURN_IF_ERROR(Run(*frame->model->operands()[branch].model, inputs, &results));
  return StoreResults(operation, std::move(results), frame);
}

Status Interpreter::RunWhile(const Operation& operation, Frame* frame) {
  const std::vector<Operand>& operands = frame->model->operands();
  const Model& condition = *operands[operation.inputs[0]].model;
  const Model& body = *operands[operation.inputs[1]].model;
  std::vector<OwnedTensor> state;
  for (size_t i = 2; i < operation.inputs.size(); ++i) {
    state.push_back(frame->values[operation.inputs[i]]);
  }
  const Clock::time_point deadline = Clock::now() + loop_timeout_;
  for (;;) {
    std::vector<Tensor> inputs;
    for (const OwnedTensor& value : state) inputs.push_back(value.tensor);
    std::vector<OwnedTensor> answer, next;
    NNSIM_RETURN_IF_ERROR(Run(condition, inputs, &answer));
    if (*answer[0].tensor.data == 0) break;
    if (Clock::now() > deadline) {
      return {ANEURALNETWORKS_MISSED_DEADLINE_TRANSIENT, "a loop ran longer than its timeout"};
    }
    NNSIM_RETURN_IF_ERROR(Run(body, inputs, &next));
    // The body yields the loop's variables; the inputs after them never change.
    std::move(next.begin(), next.end(), state.begin());
  }
  state.resize(operation.outputs.size());
  // A loop that never ran answers its inputs, which the caller may own: results own their bytes.
  for (OwnedTensor& value : state) {
    const Tensor source = value.tensor;
    value.buffer = Allocate(source.size_bytes());
    value.tensor.data = value.buffer.get();
    value.tensor.constant = nullptr;
    std::copy_n(source.data, source.size_bytes(), value.tensor.data);
  }
  return StoreResults(operation, std::move(state), frame);
}

Status Interpreter::Run(const Model& model, const std::vector<Tensor>& inputs,
                        std::vector<OwnedTensor>* outputs) {
  Frame frame{&model, {}, std::vector<uint32_t>(model.operands().size())};
  for (const Operand& operand : model.operands()) frame.values.push_back({operand.tensor, nullptr});
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor& tensor = frame.values[model.inputs()[i]].tensor;
    NNSIM_REQUIRE(Admits(tensor.dims, inputs[i].dims), "an input of another shape");
    tensor.dims = inputs[i].dims;
    tensor.data = inputs[i].data;
    tensor.omitted = inputs[i].omitted;
  }
  for (const Operation& operation : model.operations()) {
    for (uint32_t index : operation.inputs) ++frame.reads_left[index];
  }
  for (uint32_t index : model.outputs()) ++frame.reads_left[index];
  for (size_t i = 0; i < model.operations().size(); ++i) {
    const Operation& operation = model.operations()[i];
    Status status;
    ++depth_;
    if (operation.spec->code == kIf) {
      status = RunIf(operation, &frame);
    } else if (operation.spec->code == kWhile) {
      status = RunWhile(operation, &frame);
    } else {
      // Operations inside of a branch or a loop run where the outermost operation runs.
      status = RunOperation(operation, &frame, depth_ == 1 ? (*placement_)[i] : SIZE_MAX);
    }
    --depth_;
    if (!status.ok()) {
      status.message = std::string(operation.spec->name) + ": " + status.message;
      return status;
    }
  }
  for (uint32_t index : model.outputs()) outputs->push_back(std::move(frame.values[index]));
  return Ok();
}

}  // namespace nnsim
