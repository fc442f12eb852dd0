// Models.
#include <algorithm>

#include "extensions.h"
#include "handles.h"

using nnsim::BadData;
using nnsim::Report;

namespace {

std::vector<uint32_t> List(uint32_t count, const uint32_t* values) {
  return std::vector<uint32_t>(values, values + count);
}

// A code is given out where a device has the extension and the phone lets this process use it.
nnsim::Status FindCode(const std::string& extension, uint16_t code, int32_t* found) {
  const nnsim::Profile& phone = nnsim::CurrentProfile();
  NNSIM_REQUIRE(phone.extensions_allowed,
                "this process is not on the phone's list of those that may use extensions");
  const auto has = [&](const nnsim::DeviceSpec& device) {
    return device.extensions.count(extension) != 0;
  };
  NNSIM_REQUIRE(std::any_of(phone.devices.begin(), phone.devices.end(), has),
                "no device has the extension " + extension);
  *found = nnsim::ExtensionCode(extension, code);
  NNSIM_REQUIRE(*found != 0, "the simulator does not know the extension " + extension);
  return nnsim::Ok();
}

}  // namespace

int ANeuralNetworksModel_create(ANeuralNetworksModel** model) {
  NNSIM_NOT_NULL(model);
  *model = new ANeuralNetworksModel{
      std::make_shared<nnsim::Model>(nnsim::CurrentProfile().feature_level)};
  return ANEURALNETWORKS_NO_ERROR;
}

void ANeuralNetworksModel_free(ANeuralNetworksModel* model) { delete model; }

int ANeuralNetworksModel_finish(ANeuralNetworksModel* model) {
  NNSIM_NOT_NULL(model);
  return Report(__func__, model->model->Finish());
}

int ANeuralNetworksModel_addOperand(ANeuralNetworksModel* model,
                                    const ANeuralNetworksOperandType* type) {
  NNSIM_NOT_NULL(model);
  NNSIM_NOT_NULL(type);
  return Report(__func__, model->model->AddOperand(*type));
}

int ANeuralNetworksModel_setOperandValue(ANeuralNetworksModel* model, int32_t index,
                                         const void* buffer, size_t length) {
  NNSIM_NOT_NULL(model);
  if (buffer == nullptr && length != 0) NNSIM_NOT_NULL(buffer);
  return Report(__func__, model->model->SetValue(index, buffer, length));
}

int ANeuralNetworksModel_setOperandValueFromMemory(ANeuralNetworksModel* model, int32_t index,
                                                   const ANeuralNetworksMemory* memory,
                                                   size_t offset, size_t length) {
  NNSIM_NOT_NULL(model);
  NNSIM_NOT_NULL(memory);
  return Report(__func__,
                model->model->SetValueFromMapping(index, memory->mapping, offset, length));
}

int ANeuralNetworksModel_setOperandValueFromModel(ANeuralNetworksModel* model, int32_t index,
                                                  const ANeuralNetworksModel* value) {
  NNSIM_SINCE(4);
  NNSIM_NOT_NULL(model);
  NNSIM_NOT_NULL(value);
  return Report(__func__, model->model->SetValueFromModel(index, value->model));
}

int ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(
    ANeuralNetworksModel* model, int32_t index,
    const ANeuralNetworksSymmPerChannelQuantParams* params) {
  NNSIM_SINCE(3);
  NNSIM_NOT_NULL(model);
  NNSIM_NOT_NULL(params);
  if (index < 0) return Report(__func__, BadData("no such operand"));
  return Report(__func__,
                model->model->SetChannelQuantization(static_cast<uint32_t>(index), *params));
}

int ANeuralNetworksModel_addOperation(ANeuralNetworksModel* model,
                                      ANeuralNetworksOperationType type, uint32_t inputCount,
                                      const uint32_t* inputs, uint32_t outputCount,
                                      const uint32_t* outputs) {
  NNSIM_NOT_NULL(model);
  NNSIM_NOT_NULL(inputs);
  NNSIM_NOT_NULL(outputs);
  return Report(__func__, model->model->AddOperation(type, List(inputCount, inputs),
                                                     List(outputCount, outputs)));
}

int ANeuralNetworksModel_identifyInputsAndOutputs(ANeuralNetworksModel* model, uint32_t inputCount,
                                                  const uint32_t* inputs, uint32_t outputCount,
                                                  const uint32_t* outputs) {
  NNSIM_NOT_NULL(model);
  if (inputCount != 0) NNSIM_NOT_NULL(inputs);
  NNSIM_NOT_NULL(outputs);
  return Report(__func__, model->model->IdentifyInputsAndOutputs(List(inputCount, inputs),
                                                                 List(outputCount, outputs)));
}

int ANeuralNetworksModel_relaxComputationFloat32toFloat16(ANeuralNetworksModel* model, bool allow) {
  NNSIM_SINCE(2);
  NNSIM_NOT_NULL(model);
  return Report(__func__, model->model->Relax(allow));
}

int ANeuralNetworksModel_getExtensionOperandType(ANeuralNetworksModel* model, const char* extension,
                                                 uint16_t code, int32_t* type) {
  NNSIM_SINCE(3);
  NNSIM_NOT_NULL(model);
  NNSIM_NOT_NULL(extension);
  NNSIM_NOT_NULL(type);
  return Report(__func__, FindCode(extension, code, type));
}

int ANeuralNetworksModel_getExtensionOperationType(ANeuralNetworksModel* model,
                                                   const char* extension, uint16_t code,
                                                   ANeuralNetworksOperationType* type) {
  NNSIM_SINCE(3);
  NNSIM_NOT_NULL(model);
  NNSIM_NOT_NULL(extension);
  NNSIM_NOT_NULL(type);
  return Report(__func__, FindCode(extension, code, type));
}

int ANeuralNetworksModel_setOperandExtensionData(ANeuralNetworksModel* model, int32_t index,
                                                 const void* data, size_t length) {
  NNSIM_SINCE(3);
  NNSIM_NOT_NULL(model);
  if (data == nullptr && length != 0) NNSIM_NOT_NULL(data);
  return Report(__func__, model->model->SetExtensionData(index, data, length));
}
