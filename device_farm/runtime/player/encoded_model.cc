#include "player/encoded_model.h"

#include <limits>

#include "base/json_reader.h"
#include "player/operand_parser.h"

namespace nnfarm {
namespace {

constexpr int64_t kVersion = 1;
constexpr int64_t kMaxLevel = 8;
constexpr int64_t kMaxUint16 = std::numeric_limits<uint16_t>::max();
constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();

std::vector<uint32_t> ParseIndexes(const JsonValue& json, size_t operand_count) {
  std::vector<uint32_t> indexes;
  for (const JsonValue& item : json.Items()) {
    indexes.push_back(static_cast<uint32_t>(item.Int(0, static_cast<int64_t>(operand_count) - 1)));
  }
  return indexes;
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
