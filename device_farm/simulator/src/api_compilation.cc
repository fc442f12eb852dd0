// Compilations and bursts.
#include <algorithm>

#include "devices.h"

using nnsim::BadData;
using nnsim::BadState;
using nnsim::Report;
using nnsim::Status;

namespace {

// Preferences: low power 0, fast single answer 1, sustained speed 2.
constexpr int32_t kPreferences = 3;
constexpr int kPriorityLow = 90, kPriorityMedium = 100, kPriorityHigh = 110;
// What the kernels load in one go.
constexpr uint32_t kPreferredAlignment = 64;
constexpr uint32_t kPreferredPadding = 1;

Status CheckOpen(const ANeuralNetworksCompilation& handle) {
  return handle.compilation->finished() ? BadState("the compilation is finished") : nnsim::Ok();
}

Status Preferred(const ANeuralNetworksCompilation& handle, size_t count, uint32_t index,
                 uint32_t answer, uint32_t* value) {
  if (!handle.compilation->finished()) return BadState("the compilation is not finished");
  NNSIM_REQUIRE(index < count, "no such argument");
  *value = answer;
  return nnsim::Ok();
}

int Create(const char* function, ANeuralNetworksModel* model,
           std::vector<const nnsim::DeviceSpec*> devices, bool exact,
           ANeuralNetworksCompilation** compilation) {
  *compilation = nullptr;
  if (!model->model->finished()) return Report(function, BadState("the model is not finished"));
  *compilation = new ANeuralNetworksCompilation{
      std::make_shared<nnsim::Compilation>(model->model, std::move(devices), exact)};
  return ANEURALNETWORKS_NO_ERROR;
}

}  // namespace

int ANeuralNetworksCompilation_create(ANeuralNetworksModel* model,
                                      ANeuralNetworksCompilation** compilation) {
  NNSIM_NOT_NULL(model);
  NNSIM_NOT_NULL(compilation);
  std::vector<const nnsim::DeviceSpec*> devices;
  for (const ANeuralNetworksDevice& device : nnsim::Devices()) devices.push_back(&device.spec);
  return Create(__func__, model, std::move(devices), false, compilation);
}

int ANeuralNetworksCompilation_createForDevices(ANeuralNetworksModel* model,
                                                const ANeuralNetworksDevice* const* devices,
                                                uint32_t device_count,
                                                ANeuralNetworksCompilation** compilation) {
  NNSIM_SINCE(3);
  NNSIM_NOT_NULL(model);
  NNSIM_NOT_NULL(devices);
  NNSIM_NOT_NULL(compilation);
  if (device_count == 0) return Report(__func__, BadData("no devices"));
  std::vector<const nnsim::DeviceSpec*> specs;
  for (uint32_t i = 0; i < device_count; ++i) {
    NNSIM_NOT_NULL(devices[i]);
    for (const nnsim::DeviceSpec* other : specs) {
      if (other == &devices[i]->spec) return Report(__func__, BadData("a device is listed twice"));
    }
    specs.push_back(&devices[i]->spec);
  }
  return Create(__func__, model, std::move(specs), true, compilation);
}

void ANeuralNetworksCompilation_free(ANeuralNetworksCompilation* compilation) {
  delete compilation;
}

int ANeuralNetworksCompilation_setPreference(ANeuralNetworksCompilation* compilation,
                                             int32_t preference) {
  NNSIM_NOT_NULL(compilation);
  Status status = CheckOpen(*compilation);
  if (status.ok() && (preference < 0 || preference >= kPreferences)) {
    status = BadData("no such preference");
  }
  return Report(__func__, status);
}

int ANeuralNetworksCompilation_setPriority(ANeuralNetworksCompilation* compilation, int priority) {
  NNSIM_SINCE(4);
  NNSIM_NOT_NULL(compilation);
  Status status = CheckOpen(*compilation);
  if (status.ok() && priority != kPriorityLow && priority != kPriorityMedium &&
      priority != kPriorityHigh) {
    status = BadData("no such priority");
  }
  return Report(__func__, status);
}

int ANeuralNetworksCompilation_setTimeout(ANeuralNetworksCompilation* compilation,
                                          uint64_t duration_ns) {
  NNSIM_SINCE(4);
  NNSIM_NOT_NULL(compilation);
  Status status = CheckOpen(*compilation);
  if (status.ok() && !compilation->compilation->one_device()) {
    status = BadData("a timeout needs a compilation for exactly one device");
  }
  if (status.ok()) compilation->compilation->SetTimeout(duration_ns);
  return Report(__func__, status);
}

int ANeuralNetworksCompilation_setCaching(ANeuralNetworksCompilation* compilation,
                                          const char* directory, const uint8_t* token) {
  NNSIM_SINCE(3);
  NNSIM_NOT_NULL(compilation);
  NNSIM_NOT_NULL(directory);
  NNSIM_NOT_NULL(token);
  Status status = CheckOpen(*compilation);
  if (status.ok()) status = compilation->compilation->SetCaching(directory, token);
  return Report(__func__, status);
}

int ANeuralNetworksCompilation_addExtensionAttribute(ANeuralNetworksCompilation* compilation,
                                                     const char* extension, uint16_t, const void*,
                                                     size_t) {
  NNSIM_SINCE(8);
  NNSIM_NOT_NULL(compilation);
  NNSIM_NOT_NULL(extension);
  return Report(__func__, BadData(std::string("extension ") + extension + " is not supported"));
}

int ANeuralNetworksCompilation_finish(ANeuralNetworksCompilation* compilation) {
  NNSIM_NOT_NULL(compilation);
  return Report(__func__, compilation->compilation->Finish());
}

int ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput(
    const ANeuralNetworksCompilation* compilation, uint32_t index, uint32_t* alignment) {
  NNSIM_SINCE(5);
  NNSIM_NOT_NULL(compilation);
  NNSIM_NOT_NULL(alignment);
  return Report(__func__,
                Preferred(*compilation, compilation->compilation->model().inputs().size(), index,
                          kPreferredAlignment, alignment));
}

int ANeuralNetworksCompilation_getPreferredMemoryPaddingForInput(
    const ANeuralNetworksCompilation* compilation, uint32_t index, uint32_t* padding) {
  NNSIM_SINCE(5);
  NNSIM_NOT_NULL(compilation);
  NNSIM_NOT_NULL(padding);
  return Report(__func__,
                Preferred(*compilation, compilation->compilation->model().inputs().size(), index,
                          kPreferredPadding, padding));
}

int ANeuralNetworksCompilation_getPreferredMemoryAlignmentForOutput(
    const ANeuralNetworksCompilation* compilation, uint32_t index, uint32_t* alignment) {
  NNSIM_SINCE(5);
  NNSIM_NOT_NULL(compilation);
  NNSIM_NOT_NULL(alignment);
  return Report(__func__,
                Preferred(*compilation, compilation->compilation->model().outputs().size(), index,
                          kPreferredAlignment, alignment));
}

int ANeuralNetworksCompilation_getPreferredMemoryPaddingForOutput(
    const ANeuralNetworksCompilation* compilation, uint32_t index, uint32_t* padding) {
  NNSIM_SINCE(5);
  NNSIM_NOT_NULL(compilation);
  NNSIM_NOT_NULL(padding);
  return Report(__func__,
                Preferred(*compilation, compilation->compilation->model().outputs().size(), index,
                          kPreferredPadding, padding));
}

int ANeuralNetworksBurst_create(ANeuralNetworksCompilation* compilation,
                                ANeuralNetworksBurst** burst) {
  NNSIM_SINCE(3);
  NNSIM_NOT_NULL(compilation);
  NNSIM_NOT_NULL(burst);
  *burst = nullptr;
  if (!compilation->compilation->finished()) {
    return Report(__func__, BadState("the compilation is not finished"));
  }
  *burst = new ANeuralNetworksBurst{compilation->compilation, {}};
  return ANEURALNETWORKS_NO_ERROR;
}

void ANeuralNetworksBurst_free(ANeuralNetworksBurst* burst) { delete burst; }
