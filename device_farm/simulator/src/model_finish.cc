// Checks of a whole model.
#include <algorithm>

#include "model.h"

namespace nnsim {
namespace {

// Which operation writes each operand; kNone: none does.
constexpr int kNone = -1;

std::string Describe(const Operation& operation) { return operation.spec->name; }

// The call of an operation over `tensors`; outputs are bound to `results`, one each.
Call Bind(const Operation& operation, std::vector<Tensor>* tensors, std::vector<Tensor>* results) {
  std::vector<Tensor*> inputs, outputs;
  for (uint32_t index : operation.inputs) inputs.push_back(&(*tensors)[index]);
  results->reserve(operation.outputs.size());
  for (uint32_t index : operation.outputs) {
    results->push_back((*tensors)[index]);
    outputs.push_back(&results->back());
  }
  return Call(std::move(inputs), std::move(outputs));
}

bool InputsKnown(const Operation& operation, const std::vector<Tensor>& tensors) {
  return std::all_of(operation.inputs.begin(), operation.inputs.end(), [&](uint32_t index) {
    return tensors[index].omitted || tensors[index].fully_known();
  });
}

}  // namespace

Status Model::CheckWriters(std::vector<int>* writer) const {
  writer->assign(operands_.size(), kNone);
  for (size_t i = 0; i < operations_.size(); ++i) {
    for (uint32_t index : operations_[i].outputs) {
      const Lifetime lifetime = operands_[index].lifetime;
      NNSIM_REQUIRE(lifetime == Lifetime::kTemporary || lifetime == Lifetime::kOutput,
                    Describe(operations_[i]) + " writes operand " + std::to_string(index) +
                        ", which is not a result");
      NNSIM_REQUIRE((*writer)[index] == kNone,
                    "operand " + std::to_string(index) + " is written twice");
      (*writer)[index] = static_cast<int>(i);
    }
  }
  for (size_t index = 0; index < operands_.size(); ++index) {
    NNSIM_REQUIRE(operands_[index].lifetime != Lifetime::kOutput || (*writer)[index] != kNone,
                  "model output " + std::to_string(index) + " is written by no operation");
  }
  return Ok();
}

Status Model::Sort() {
  std::vector<int> writer;
  NNSIM_RETURN_IF_ERROR(CheckWriters(&writer));
  std::vector<bool> ready(operands_.size()), placed(operations_.size());
  for (size_t i = 0; i < operands_.size(); ++i) {
    ready[i] = writer[i] == kNone && operands_[i].lifetime != Lifetime::kTemporary;
  }
  std::vector<Operation> order;
  for (bool progress = true; progress && order.size() < operations_.size();) {
    progress = false;
    for (size_t i = 0; i < operations_.size(); ++i) {
      const Operation& operation = operations_[i];
      if (placed[i] || !std::all_of(operation.inputs.begin(), operation.inputs.end(),
                                    [&](uint32_t index) { return ready[index]; })) {
        continue;
      }
      placed[i] = progress = true;
      for (uint32_t index : operation.outputs) ready[index] = true;
      order.push_back(operation);
    }
  }
  NNSIM_REQUIRE(order.size() == operations_.size(),
                "an operation reads an operand nobody writes, or the operations form a cycle");
  operations_ = std::move(order);
  return Ok();
}

Status Model::CheckShapes() const {
  std::vector<Tensor> tensors;
  for (const Operand& operand : operands_) tensors.push_back(operand.tensor);
  for (const Operation& operation : operations_) {
    if (!InputsKnown(operation, tensors)) continue;
    std::vector<Tensor> results;
    Call call = Bind(operation, &tensors, &results);
    const Status status = operation.spec->prepare(call);
    if (call.deferred()) continue;
    NNSIM_REQUIRE(status.ok(), Describe(operation) + ": " + status.message);
    NNSIM_REQUIRE(call.needed_level() <= level_,
                  Describe(operation) + " with these shapes and values needs feature level " +
                      std::to_string(call.needed_level()));
    for (size_t i = 0; i < results.size(); ++i) {
      Tensor& declared = tensors[operation.outputs[i]];
      NNSIM_REQUIRE(Admits(declared.dims, results[i].dims),
                    Describe(operation) + ": output " + std::to_string(i) + " is " +
                        ToString(results[i].dims) + ", the model says " + ToString(declared.dims));
      declared.dims = results[i].dims;
    }
  }
  return Ok();
}

Status Model::Finish() {
  NNSIM_RETURN_IF_ERROR(CheckOpen());
  NNSIM_REQUIRE(!operations_.empty(), "a model without operations");
  NNSIM_REQUIRE(identified_, "inputs and outputs are not identified");
  for (Operand& operand : operands_) {
    NNSIM_REQUIRE(operand.tensor.type != ANEURALNETWORKS_TENSOR_QUANT8_SYMM_PER_CHANNEL ||
                      !operand.tensor.channel_scales.empty(),
                  "a per-channel operand without scales");
    operand.tensor.constant = operand.cache.get();
  }
  NNSIM_RETURN_IF_ERROR(Sort());
  NNSIM_RETURN_IF_ERROR(CheckShapes());
  finished_ = true;
  return Ok();
}

}  // namespace nnsim
