#include "player/encoded_model.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "base/json_reader.h"
#include "player/base64.h"

namespace nnfarm {
namespace {

constexpr int64_t kVersion = 1;
constexpr int64_t kMaxLevel = 8;
constexpr int32_t kTypeModel = 15;  // references to other models are not encoded
constexpr int32_t kTypePerChannel = 11;
constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxUint32 = std::numeric_limits<uint32_t>::max();
constexpr int64_t kMaxUint16 = std::numeric_limits<uint16_t>::max();
constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();
constexpr uint64_t kOffsetAlignment = 64;
// NNAPI counts a tensor's bytes in 32 bits.
constexpr uint64_t kMaxTensorSize = std::numeric_limits<uint32_t>::max();

// Bytes of an element by OperandCode: scalars and tensors of NeuralNetworksTypes.h.
constexpr uint32_t kElementSizes[] = {4, 4, 4, 4, 4, 1, 1, 2, 2, 1, 2, 1, 2, 1, 1};

// OperandCodes of scalars: FLOAT32, INT32, UINT32, BOOL, FLOAT16. All others are tensors.
constexpr int32_t kScalarTypes[] = {0, 1, 2, 6, 10};

std::vector<uint32_t> ParseDims(const JsonValue& json) {
  std::vector<uint32_t> dims;
  for (const JsonValue& item : json.Items()) {
    dims.push_back(static_cast<uint32_t>(item.Int(0, kMaxUint32)));
  }
  return dims;
}

std::vector<uint32_t> ParseIndexes(const JsonValue& json, size_t operand_count) {
  std::vector<uint32_t> indexes;
  for (const JsonValue& item : json.Items()) {
    indexes.push_back(static_cast<uint32_t>(item.Int(0, static_cast<int64_t>(operand_count) - 1)));
  }
  return indexes;
}

float ParseFloat(const JsonValue& json) {
  const double number = json.Number();
  if (!std::isfinite(number) || std::abs(number) > std::numeric_limits<float>::max()) {
    json.Refuse("a finite 32-bit float is expected");
  }
  return static_cast<float>(number);
}

std::string ParseExtension(const JsonValue& json) {
  if (!json.Has("extension")) return std::string();
  std::string name = json.Get("extension").String();
  if (name.empty()) json.Refuse("the extension's name is empty");
  return name;
}

// A code of NNAPI itself below `limit`, or 16 bits inside an extension.
int32_t ParseCode(const JsonValue& json, bool in_extension, int64_t limit) {
  return static_cast<int32_t>(json.Int(0, in_extension ? kMaxUint16 : limit));
}

WeightsReference ParseWeights(const JsonValue& json) {
  WeightsReference weights;
  weights.file = json.Get("file").String();
  const bool plain = !weights.file.empty() && weights.file.find('/') == std::string::npos &&
                     weights.file != "." && weights.file != "..";
  if (!plain) json.Refuse("file is not a plain file name: " + weights.file);
  weights.size = static_cast<uint64_t>(json.Get("size").Int(1, kMaxInt64));
  return weights;
}

// NNAPI has no tensors of rank 0: no dimensions would say that the rank is unknown.
void CheckRank(const JsonValue& json, const EncodedOperand& operand) {
  if (!operand.extension.empty()) return;
  const bool is_scalar = std::find(std::begin(kScalarTypes), std::end(kScalarTypes),
                                   operand.type) != std::end(kScalarTypes);
  if (is_scalar != operand.dims.empty()) {
    json.Refuse(is_scalar ? "a scalar has no dimensions" : "a tensor has dimensions");
  }
}

void ParseChannels(const JsonValue& json, EncodedOperand* operand) {
  const bool per_channel = operand->extension.empty() && operand->type == kTypePerChannel;
  const bool given = json.Has("channel_dim") || json.Has("channel_scales");
  if (per_channel != given) {
    json.Refuse("channel_dim and channel_scales belong to type 11, and to it only");
  }
  if (!per_channel) return;
  const auto rank = static_cast<int64_t>(operand->dims.size());
  operand->channel_dim = static_cast<uint32_t>(json.Get("channel_dim").Int(0, rank - 1));
  for (const JsonValue& item : json.Get("channel_scales").Items()) {
    const float scale = ParseFloat(item);
    if (!(scale > 0.0F)) item.Refuse("a channel scale must be positive");
    operand->channel_scales.push_back(scale);
  }
  if (operand->channel_scales.size() != operand->dims[operand->channel_dim]) {
    json.Refuse("channel_scales do not match the dimension " +
                std::to_string(operand->channel_dim));
  }
}

void ParseExtensionData(const JsonValue& json, EncodedOperand* operand) {
  if (!json.Has("extension_data")) return;
  const JsonValue text = json.Get("extension_data");
  if (operand->extension.empty()) text.Refuse("only an extension's type has extension data");
  auto bytes = DecodeBase64(text.String());
  if (!bytes.has_value()) text.Refuse("not base64");
  if (bytes->empty()) text.Refuse("empty");
  operand->extension_data = *std::move(bytes);
}

void CheckConstantSize(const JsonValue& json, const EncodedOperand& operand, uint64_t size) {
  if (operand.ElementSize() == 0) return;  // only the extension's driver knows the size
  const auto expected = TensorSize(operand.dims, operand.ElementSize(), kMaxTensorSize);
  if (!expected.has_value()) json.Refuse("the dimensions overflow");
  if (*expected != size) {
    json.Refuse("the constant has " + std::to_string(size) + " bytes, its type needs " +
                std::to_string(*expected));
  }
}

void ParseFileRange(const JsonValue& json, const std::optional<WeightsReference>& weights,
                    EncodedOperand* operand) {
  if (!weights.has_value()) json.Refuse("offset without a weights file");
  operand->offset = static_cast<uint64_t>(json.Get("offset").Int(0, kMaxInt64));
  operand->size = static_cast<uint64_t>(json.Get("size").Int(1, kMaxInt64));
  if (operand->offset % kOffsetAlignment != 0) json.Refuse("offset is not a multiple of 64");
  if (operand->offset > weights->size || operand->size > weights->size - operand->offset) {
    json.Refuse("the constant ends after the weights file of " + std::to_string(weights->size) +
                " bytes");
  }
}

void ParseValue(const JsonValue& json, const std::optional<WeightsReference>& weights,
                EncodedOperand* operand) {
  const bool omitted = json.Has("omitted") && json.Get("omitted").Bool();
  if (json.Has("data") + json.Has("offset") + omitted > 1) {
    json.Refuse("only one of data, offset, omitted can be given");
  }
  if (omitted) {
    operand->source = ValueSource::kOmitted;
  } else if (json.Has("data")) {
    auto bytes = DecodeBase64(json.Get("data").String());
    if (!bytes.has_value()) json.Get("data").Refuse("not base64");
    if (bytes->empty()) json.Get("data").Refuse("empty");
    operand->source = ValueSource::kInline;
    operand->data = *std::move(bytes);
    CheckConstantSize(json, *operand, operand->data.size());
  } else if (json.Has("offset")) {
    operand->source = ValueSource::kFile;
    ParseFileRange(json, weights, operand);
    CheckConstantSize(json, *operand, operand->size);
  } else if (!TensorSize(operand->dims, 1, kMaxTensorSize).has_value()) {
    json.Refuse("the dimensions overflow");
  }
}

EncodedOperand ParseOperand(const JsonValue& json, const std::optional<WeightsReference>& weights) {
  EncodedOperand operand;
  operand.extension = ParseExtension(json);
  operand.type = ParseCode(json.Get("type"), !operand.extension.empty(), kTypeModel - 1);
  operand.dims = ParseDims(json.Get("dims"));
  if (json.Has("scale")) operand.scale = ParseFloat(json.Get("scale"));
  if (json.Has("zero_point")) {
    operand.zero_point = static_cast<int32_t>(json.Get("zero_point").Int(-kMaxInt32 - 1, kMaxInt32));
  }
  CheckRank(json, operand);
  ParseChannels(json, &operand);
  ParseExtensionData(json, &operand);
  ParseValue(json, weights, &operand);
  return operand;
}

EncodedOperation ParseOperation(const JsonValue& json, size_t operand_count) {
  EncodedOperation operation;
  operation.extension = ParseExtension(json);
  operation.code = ParseCode(json.Get("code"), !operation.extension.empty(), kMaxUint16);
  operation.name = json.Get("name").String();
  operation.inputs = ParseIndexes(json.Get("inputs"), operand_count);
  operation.outputs = ParseIndexes(json.Get("outputs"), operand_count);
  if (operation.outputs.empty()) json.Refuse("an operation without outputs");
  return operation;
}

// Marks runtime operands as they get their value; refuses a second writer and an early reader.
class DataFlow {
 public:
  DataFlow(const JsonValue& json, const EncodedModel& model)
      : json_(json), model_(model), written_(model.operands.size(), false) {}

  void Write(uint32_t index, const std::string& writer) {
    if (model_.operands[index].source != ValueSource::kRuntime) {
      json_.Refuse(writer + " writes the constant operand " + std::to_string(index));
    }
    if (written_[index]) {
      json_.Refuse(writer + " writes the operand " + std::to_string(index) + " again");
    }
    written_[index] = true;
  }

  void Read(uint32_t index, const std::string& reader) const {
    if (model_.operands[index].source == ValueSource::kRuntime && !written_[index]) {
      json_.Refuse(reader + " reads the operand " + std::to_string(index) +
                   " before it has a value");
    }
  }

 private:
  const JsonValue& json_;
  const EncodedModel& model_;
  std::vector<bool> written_;
};

void CheckDataFlow(const JsonValue& json, const EncodedModel& model) {
  DataFlow flow(json, model);
  for (const uint32_t index : model.inputs) flow.Write(index, "inputs");
  for (size_t i = 0; i < model.operations.size(); ++i) {
    const EncodedOperation& operation = model.operations[i];
    const std::string who = "operations[" + std::to_string(i) + "] " + operation.name;
    for (const uint32_t index : operation.inputs) flow.Read(index, who);
    for (const uint32_t index : operation.outputs) flow.Write(index, who);
  }
  for (const uint32_t index : model.outputs) {
    if (model.operands[index].source != ValueSource::kRuntime) {
      json.Refuse("the model output " + std::to_string(index) + " is a constant");
    }
    flow.Read(index, "outputs");
  }
}

}  // namespace

std::optional<uint64_t> TensorSize(const std::vector<uint32_t>& dims, uint32_t element_size,
                                   uint64_t limit) {
  uint64_t size = element_size;
  for (const uint32_t dim : dims) {
    if (dim != 0 && size > limit / dim) return std::nullopt;
    size *= dim;
  }
  return size;
}

uint32_t EncodedOperand::ElementSize() const {
  return extension.empty() ? kElementSizes[static_cast<size_t>(type)] : 0;
}

bool EncodedOperand::IsDynamic() const {
  for (const uint32_t dim : dims) {
    if (dim == 0) return true;
  }
  return false;
}

EncodedModel EncodedModel::Parse(std::string_view text) {
  const JsonValue json = JsonValue::Parse(text, "encoded model");
  if (json.Get("format").String() != "nnfarm.nnapi") json.Refuse("not an nnfarm.nnapi document");
  const int64_t version = json.Get("version").Int(0, kMaxInt64);
  if (version != kVersion) {
    json.Refuse("version " + std::to_string(version) + "; this player reads version 1");
  }
  EncodedModel model;
  model.content = Sha256(text);
  model.symbol = json.Get("symbol").String();
  if (model.symbol.empty()) json.Refuse("symbol is empty");
  model.level = static_cast<int>(json.Get("level").Int(1, kMaxLevel));
  model.relaxed = json.Get("relaxed").Bool();
  if (json.Has("weights")) model.weights = ParseWeights(json.Get("weights"));
  for (const JsonValue& item : json.Get("operands").Items()) {
    model.operands.push_back(ParseOperand(item, model.weights));
  }
  const size_t operand_count = model.operands.size();
  for (const JsonValue& item : json.Get("operations").Items()) {
    model.operations.push_back(ParseOperation(item, operand_count));
  }
  if (model.operations.empty()) json.Refuse("no operations");
  model.inputs = ParseIndexes(json.Get("inputs"), operand_count);
  model.outputs = ParseIndexes(json.Get("outputs"), operand_count);
  if (model.outputs.empty()) json.Refuse("no outputs");
  CheckDataFlow(json, model);
  return model;
}

}  // namespace nnfarm
