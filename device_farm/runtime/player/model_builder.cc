#include "player/model_builder.h"

#include <string>

#include "base/log.h"
#include "player/nnapi_error.h"

namespace nnfarm {
namespace {

class ModelBuilder {
 public:
  ModelBuilder(const nnapi::Api& api, const EncodedModel& encoded, const Weights* weights)
      : api_(api),
        encoded_(encoded),
        weights_(weights),
        model_(Make(api.ANeuralNetworksModel_free, fallback_code::kModelRefused,
                    "ANeuralNetworksModel_create",
                    [&](nnapi::Model** model) { return api.ANeuralNetworksModel_create(model); })) {
  }

  Owned<nnapi::Model> Build() {
    for (size_t i = 0; i < encoded_.operands.size(); ++i) {
      AddOperand(encoded_.operands[i], "operand " + std::to_string(i));
      SetValue(static_cast<int32_t>(i), encoded_.operands[i], "operand " + std::to_string(i));
    }
    for (size_t i = 0; i < encoded_.operations.size(); ++i) {
      AddOperation(encoded_.operations[i], "operation " + std::to_string(i));
    }
    const auto& inputs = encoded_.inputs;
    const auto& outputs = encoded_.outputs;
    Check(api_.ANeuralNetworksModel_identifyInputsAndOutputs(
              model_.get(), static_cast<uint32_t>(inputs.size()), inputs.data(),
              static_cast<uint32_t>(outputs.size()), outputs.data()),
          "ANeuralNetworksModel_identifyInputsAndOutputs", "");
    if (encoded_.relaxed) Relax();
    Check(api_.ANeuralNetworksModel_finish(model_.get()), "ANeuralNetworksModel_finish", "");
    return std::move(model_);
  }

 private:
  static void Check(int result, const char* function, const std::string& place,
                    const char* code = fallback_code::kModelRefused) {
    if (result == nnapi::kNoError) return;
    const std::string where = place.empty() ? "" : " for " + place;
    ThrowNnapiError(code, std::string(function) + where + ": " + nnapi::ResultName(result));
  }

  void AddOperand(const EncodedOperand& operand, const std::string& place) {
    nnapi::OperandType type{};
    type.type = OperandCode(operand, place);
    type.dimension_count = static_cast<uint32_t>(operand.dims.size());
    type.dimensions = operand.dims.empty() ? nullptr : operand.dims.data();
    type.scale = operand.scale;
    type.zero_point = operand.zero_point;
    Check(api_.ANeuralNetworksModel_addOperand(model_.get(), &type),
          "ANeuralNetworksModel_addOperand", place);
  }

  int32_t OperandCode(const EncodedOperand& operand, const std::string& place) {
    if (operand.extension.empty()) return operand.type;
    int32_t code = 0;
    CheckExtension(
        api_.ANeuralNetworksModel_getExtensionOperandType(
            model_.get(), operand.extension.c_str(), static_cast<uint16_t>(operand.type), &code),
        "ANeuralNetworksModel_getExtensionOperandType", place, operand.extension);
    return code;
  }

  int32_t OperationCode(const EncodedOperation& operation, const std::string& place) {
    if (operation.extension.empty()) return operation.code;
    int32_t code = 0;
    CheckExtension(api_.ANeuralNetworksModel_getExtensionOperationType(
                       model_.get(), operation.extension.c_str(),
                       static_cast<uint16_t>(operation.code), &code),
                   "ANeuralNetworksModel_getExtensionOperationType", place, operation.extension);
    return code;
  }

  // A code gets its high bits from the model, per process. A device has the extension: that was
  // asked before. What is refused now is this process.
  static void CheckExtension(int result, const char* function, const std::string& place,
                             const std::string& extension) {
    if (result == nnapi::kNoError) return;
    ThrowNnapiError(fallback_code::kExtensionUnsupported,
                    std::string(function) + " for " + place + ": " + nnapi::ResultName(result) +
                        "; a device has " + extension +
                        ", so this program may be missing in the vendor's list of those that may "
                        "use extensions (/vendor/etc/nnapi_extensions_app_allowlist)");
  }

  void SetValue(int32_t index, const EncodedOperand& operand, const std::string& place) {
    if (!operand.channel_scales.empty()) SetChannels(index, operand, place);
    if (!operand.extension_data.empty()) {
      // addOperand has made sure of level 3 and the extension's type.
      Check(api_.ANeuralNetworksModel_setOperandExtensionData(
                model_.get(), index, operand.extension_data.data(), operand.extension_data.size()),
            "ANeuralNetworksModel_setOperandExtensionData", place,
            fallback_code::kExtensionUnsupported);
    }
    switch (operand.source) {
      case ValueSource::kRuntime:
        return;
      case ValueSource::kInline:
        // Values above 128 bytes are not copied by NNAPI; `encoded_` outlives the model.
        return Check(api_.ANeuralNetworksModel_setOperandValue(
                         model_.get(), index, operand.data.data(), operand.data.size()),
                     "ANeuralNetworksModel_setOperandValue", place);
      case ValueSource::kOmitted:
        return Check(
            api_.ANeuralNetworksModel_setOperandValue(model_.get(), index, nullptr, 0),
            "ANeuralNetworksModel_setOperandValue", place);
      case ValueSource::kFile:
        return weights_->SetOperand(model_.get(), index, operand);
    }
  }

  void SetChannels(int32_t index, const EncodedOperand& operand, const std::string& place) {
    // Level 3 brought the type and this call together.
    if (api_.feature_level < 3) {
      ThrowNnapiError(fallback_code::kLevelTooLow, "per-channel scales need feature level 3");
    }
    const nnapi::SymmPerChannelQuantParams parameters{
        operand.channel_dim, static_cast<uint32_t>(operand.channel_scales.size()),
        operand.channel_scales.data()};
    Check(api_.ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(model_.get(), index,
                                                                        &parameters),
          "ANeuralNetworksModel_setOperandSymmPerChannelQuantParams", place);
  }

  void AddOperation(const EncodedOperation& operation, const std::string& place) {
    Check(api_.ANeuralNetworksModel_addOperation(
              model_.get(), OperationCode(operation, place),
              static_cast<uint32_t>(operation.inputs.size()), operation.inputs.data(),
              static_cast<uint32_t>(operation.outputs.size()), operation.outputs.data()),
          "ANeuralNetworksModel_addOperation", place + " " + operation.name);
  }

  void Relax() {
    if (api_.feature_level < 2) {
      // A permission, not a demand: level 1 cannot be told and computes in full precision.
      LogLine("relaxed precision is not known at feature level 1; full precision is used");
      return;
    }
    Check(api_.ANeuralNetworksModel_relaxComputationFloat32toFloat16(model_.get(), true),
          "ANeuralNetworksModel_relaxComputationFloat32toFloat16", "");
  }

  const nnapi::Api& api_;
  const EncodedModel& encoded_;
  const Weights* weights_;
  Owned<nnapi::Model> model_;
};

}  // namespace

Owned<nnapi::Model> BuildModel(const nnapi::Api& api, const EncodedModel& encoded,
                               const Weights* weights) {
  return ModelBuilder(api, encoded, weights).Build();
}

}  // namespace nnfarm
