#include "player/operand_parser.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "player/base64.h"

namespace nnfarm {
namespace {

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

float ParseFloat(const JsonValue& json) {
  const double number = json.Number();
  if (!std::isfinite(number) || std::abs(number) > std::numeric_limits<float>::max()) {
    json.Refuse("a finite 32-bit float is expected");
  }
  return static_cast<float>(number);
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

}  // namespace

std::string ParseExtension(const JsonValue& json) {
  if (!json.Has("extension")) return std::string();
  std::string name = json.Get("extension").String();
  if (name.empty()) json.Refuse("the extension's name is empty");
  return name;
}

int32_t ParseCode(const JsonValue& json, bool in_extension, int64_t limit) {
  return static_cast<int32_t>(json.Int(0, in_extension ? kMaxUint16 : limit));
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

}  // namespace nnfarm
