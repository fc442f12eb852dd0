#include "model.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "extensions.h"
#include "operand_rules.h"

namespace nnsim {
namespace {

Status CheckIndexes(const std::vector<uint32_t>& indexes, size_t operand_count, bool unique) {
  std::set<uint32_t> seen;
  for (uint32_t index : indexes) {
    NNSIM_REQUIRE(index < operand_count, "operand " + std::to_string(index) + " does not exist");
    NNSIM_REQUIRE(seen.insert(index).second || !unique,
                  "operand " + std::to_string(index) + " is listed twice");
  }
  return Ok();
}

}  // namespace

bool Admits(const Dims& declared, const Dims& inferred) {
  if (declared.empty()) return true;
  if (declared.size() != inferred.size()) return false;
  for (size_t i = 0; i < declared.size(); ++i) {
    if (declared[i] != 0 && declared[i] != inferred[i]) return false;
  }
  return true;
}

Status Model::CheckOpen() const {
  return finished_ ? BadState("the model is finished") : Ok();
}

Status Model::AddOperand(const ANeuralNetworksOperandType& type) {
  NNSIM_RETURN_IF_ERROR(CheckOpen());
  Operand operand;
  NNSIM_RETURN_IF_ERROR(ToTensor(type, level_, &operand.tensor));
  operands_.push_back(std::move(operand));
  return Ok();
}

Status Model::SetChannelQuantization(uint32_t index,
                                     const ANeuralNetworksSymmPerChannelQuantParams& params) {
  NNSIM_RETURN_IF_ERROR(CheckOpen());
  NNSIM_REQUIRE(index < operands_.size(), "no such operand");
  Tensor& tensor = operands_[index].tensor;
  NNSIM_REQUIRE(tensor.type == ANEURALNETWORKS_TENSOR_QUANT8_SYMM_PER_CHANNEL,
                "per-channel scales belong to TENSOR_QUANT8_SYMM_PER_CHANNEL only");
  NNSIM_REQUIRE(params.channelDim < tensor.dims.size(), "channelDim is out of range");
  NNSIM_REQUIRE(params.scales != nullptr && params.scaleCount == tensor.dims[params.channelDim] &&
                    params.scaleCount > 0,
                "one scale a channel is needed");
  for (uint32_t i = 0; i < params.scaleCount; ++i) {
    NNSIM_REQUIRE(params.scales[i] > 0, "a channel's scale is not above 0");
  }
  tensor.channel_dim = params.channelDim;
  tensor.channel_scales.assign(params.scales, params.scales + params.scaleCount);
  return Ok();
}

Status Model::CheckSettable(int32_t index, size_t length) const {
  NNSIM_RETURN_IF_ERROR(CheckOpen());
  NNSIM_REQUIRE(index >= 0 && static_cast<size_t>(index) < operands_.size(), "no such operand");
  const Operand& operand = operands_[static_cast<size_t>(index)];
  NNSIM_REQUIRE(operand.lifetime == Lifetime::kTemporary ||
                    operand.lifetime == Lifetime::kConstant ||
                    operand.lifetime == Lifetime::kOmitted,
                "a model input, output or sub-model takes no value");
  NNSIM_REQUIRE(operand.tensor.type != ANEURALNETWORKS_MODEL, "a sub-model takes no buffer");
  NNSIM_REQUIRE(length == operand.tensor.size_bytes(),
                "operand " + std::to_string(index) + ": " + std::to_string(length) + " bytes, " +
                    std::to_string(operand.tensor.size_bytes()) + " expected");
  return Ok();
}

void Model::MakeConstant(Operand* operand, const void* data, size_t length, bool copy) {
  const bool aligned = reinterpret_cast<uintptr_t>(data) % alignof(uint32_t) == 0;
  operand->lifetime = Lifetime::kConstant;
  operand->tensor.omitted = false;
  operand->cache = std::make_shared<ConstantCache>();
  if (copy || !aligned) {
    operand->copy.assign(length / sizeof(uint32_t) + 1, 0);
    std::memcpy(operand->copy.data(), data, length);
    data = operand->copy.data();
  }
  operand->tensor.data = static_cast<uint8_t*>(const_cast<void*>(data));
}

Status Model::SetValue(int32_t index, const void* buffer, size_t length) {
  if (buffer == nullptr && length == 0) {
    NNSIM_RETURN_IF_ERROR(CheckOpen());
    NNSIM_REQUIRE(index >= 0 && static_cast<size_t>(index) < operands_.size(), "no such operand");
    Operand& operand = operands_[static_cast<size_t>(index)];
    operand.lifetime = Lifetime::kOmitted;
    operand.tensor.omitted = true;
    return Ok();
  }
  NNSIM_REQUIRE(buffer != nullptr, "a null buffer with a length");
  NNSIM_RETURN_IF_ERROR(CheckSettable(index, length));
  MakeConstant(&operands_[static_cast<size_t>(index)], buffer, length,
               length <= ANEURALNETWORKS_MAX_SIZE_OF_IMMEDIATELY_COPIED_VALUES);
  return Ok();
}

Status Model::SetValueFromMapping(int32_t index, std::shared_ptr<Mapping> mapping, size_t offset,
                                  size_t length) {
  NNSIM_REQUIRE(!mapping->opaque(), "a memory made from a descriptor holds no constant");
  NNSIM_RETURN_IF_ERROR(CheckSettable(index, length));
  NNSIM_REQUIRE(mapping->Contains(offset, length), "the value lies outside of the memory");
  Operand& operand = operands_[static_cast<size_t>(index)];
  MakeConstant(&operand, mapping->data() + offset, length, false);
  operand.mapping = std::move(mapping);
  return Ok();
}

Status Model::SetValueFromModel(int32_t index, std::shared_ptr<const Model> value) {
  NNSIM_RETURN_IF_ERROR(CheckOpen());
  NNSIM_REQUIRE(index >= 0 && static_cast<size_t>(index) < operands_.size(), "no such operand");
  NNSIM_REQUIRE(value->finished(), "the sub-model is not finished");
  NNSIM_REQUIRE(value.get() != this, "a model cannot contain itself");
  Operand& operand = operands_[static_cast<size_t>(index)];
  NNSIM_REQUIRE(operand.tensor.type == ANEURALNETWORKS_MODEL, "the operand is not of type MODEL");
  operand.lifetime = Lifetime::kModel;
  operand.model = std::move(value);
  return Ok();
}

Status Model::SetExtensionData(int32_t index, const void* data, size_t length) {
  NNSIM_RETURN_IF_ERROR(CheckOpen());
  NNSIM_REQUIRE(index >= 0 && static_cast<size_t>(index) < operands_.size(), "no such operand");
  Tensor& tensor = operands_[static_cast<size_t>(index)].tensor;
  NNSIM_REQUIRE(FindExtensionType(tensor.type) != nullptr,
                "extension data belongs to an extension's type");
  const auto* bytes = static_cast<const uint8_t*>(data);
  tensor.extension_data.assign(bytes, bytes + length);
  return Ok();
}

Status Model::AddOperation(int32_t code, std::vector<uint32_t> inputs,
                           std::vector<uint32_t> outputs) {
  NNSIM_RETURN_IF_ERROR(CheckOpen());
  const OpSpec* spec = FindOp(code);
  NNSIM_REQUIRE(spec != nullptr, "operation " + std::to_string(code) + " is not known");
  NNSIM_RETURN_IF_ERROR(CheckIndexes(inputs, operands_.size(), false));
  NNSIM_RETURN_IF_ERROR(CheckIndexes(outputs, operands_.size(), false));
  std::vector<const Tensor*> ins, outs;
  for (uint32_t index : inputs) ins.push_back(&operands_[index].tensor);
  for (uint32_t index : outputs) outs.push_back(&operands_[index].tensor);
  int level = 0;
  NNSIM_RETURN_IF_ERROR(MatchForm(*spec, ins, outs, &level));
  NNSIM_REQUIRE(level <= level_, std::string(spec->name) +
                                     " with these operands needs feature level " +
                                     std::to_string(level) + ", this phone has " +
                                     std::to_string(level_));
  operations_.push_back({spec, level, operations_.size(), std::move(inputs), std::move(outputs)});
  return Ok();
}

Status Model::IdentifyInputsAndOutputs(std::vector<uint32_t> inputs,
                                       std::vector<uint32_t> outputs) {
  NNSIM_RETURN_IF_ERROR(CheckOpen());
  NNSIM_REQUIRE(!identified_, "inputs and outputs are identified already");
  std::vector<uint32_t> all = inputs;
  all.insert(all.end(), outputs.begin(), outputs.end());
  NNSIM_RETURN_IF_ERROR(CheckIndexes(all, operands_.size(), true));
  for (uint32_t index : all) {
    NNSIM_REQUIRE(operands_[index].lifetime == Lifetime::kTemporary,
                  "operand " + std::to_string(index) + " has a value already");
  }
  for (uint32_t index : inputs) operands_[index].lifetime = Lifetime::kInput;
  for (uint32_t index : outputs) operands_[index].lifetime = Lifetime::kOutput;
  inputs_ = std::move(inputs);
  outputs_ = std::move(outputs);
  identified_ = true;
  return Ok();
}

Status Model::Relax(bool allow) {
  NNSIM_RETURN_IF_ERROR(CheckOpen());
  relaxed_ = allow;
  return Ok();
}

}  // namespace nnsim
