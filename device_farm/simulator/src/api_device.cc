// Devices and what the phone as a whole can do.
#include <cstring>

#include "devices.h"

using nnsim::BadData;
using nnsim::Report;

namespace nnsim {

// Handles live as long as the library: the API never frees a device.
const std::deque<ANeuralNetworksDevice>& Devices() {
  static const std::deque<ANeuralNetworksDevice> devices = [] {
    std::deque<ANeuralNetworksDevice> all;
    for (const DeviceSpec& spec : CurrentProfile().devices) all.push_back({spec});
    return all;
  }();
  return devices;
}

}  // namespace nnsim

int64_t ANeuralNetworks_getRuntimeFeatureLevel(void) {
  return nnsim::PublicFeatureLevel(nnsim::CurrentProfile().feature_level);
}

int ANeuralNetworks_getDeviceCount(uint32_t* count) {
  NNSIM_SINCE(3);
  NNSIM_NOT_NULL(count);
  *count = static_cast<uint32_t>(nnsim::Devices().size());
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworks_getDevice(uint32_t index, ANeuralNetworksDevice** device) {
  NNSIM_SINCE(3);
  NNSIM_NOT_NULL(device);
  if (index >= nnsim::Devices().size()) return Report(__func__, BadData("no such device"));
  *device = const_cast<ANeuralNetworksDevice*>(&nnsim::Devices()[index]);
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksDevice_getName(const ANeuralNetworksDevice* device, const char** name) {
  NNSIM_SINCE(3);
  NNSIM_NOT_NULL(device);
  NNSIM_NOT_NULL(name);
  *name = device->spec.name.c_str();
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksDevice_getType(const ANeuralNetworksDevice* device, int32_t* type) {
  NNSIM_SINCE(3);
  NNSIM_NOT_NULL(device);
  NNSIM_NOT_NULL(type);
  *type = device->spec.type;
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksDevice_getVersion(const ANeuralNetworksDevice* device, const char** version) {
  NNSIM_SINCE(3);
  NNSIM_NOT_NULL(device);
  NNSIM_NOT_NULL(version);
  *version = device->spec.version.c_str();
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksDevice_getFeatureLevel(const ANeuralNetworksDevice* device,
                                          int64_t* feature_level) {
  NNSIM_SINCE(3);
  NNSIM_NOT_NULL(device);
  NNSIM_NOT_NULL(feature_level);
  *feature_level = nnsim::PublicFeatureLevel(device->spec.feature_level);
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksDevice_getExtensionSupport(const ANeuralNetworksDevice* device,
                                              const char* extension, bool* supported) {
  NNSIM_SINCE(3);
  NNSIM_NOT_NULL(device);
  NNSIM_NOT_NULL(extension);
  NNSIM_NOT_NULL(supported);
  *supported = device->spec.extensions.count(extension) != 0;
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksDevice_wait(const ANeuralNetworksDevice* device) {
  NNSIM_SINCE(4);
  NNSIM_NOT_NULL(device);
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksModel_getSupportedOperationsForDevices(
    const ANeuralNetworksModel* model, const ANeuralNetworksDevice* const* devices,
    uint32_t device_count, bool* supported) {
  NNSIM_SINCE(3);
  NNSIM_NOT_NULL(model);
  NNSIM_NOT_NULL(devices);
  NNSIM_NOT_NULL(supported);
  if (device_count == 0) return Report(__func__, BadData("no devices"));
  for (uint32_t d = 0; d < device_count; ++d) NNSIM_NOT_NULL(devices[d]);
  if (!model->model->finished()) {
    return Report(__func__, nnsim::BadState("the model is not finished"));
  }
  // In the order the operations were added, which is not always the run order.
  for (const nnsim::Operation& operation : model->model->operations()) {
    bool any = false;
    for (uint32_t d = 0; d < device_count; ++d) {
      any = any || nnsim::Supports(devices[d]->spec, *model->model, operation);
    }
    supported[operation.added] = any;
  }
  return ANEURALNETWORKS_NO_ERROR;
}

uint64_t ANeuralNetworks_getDefaultLoopTimeout(void) { return nnsim::kDefaultLoopTimeoutNs; }
uint64_t ANeuralNetworks_getMaximumLoopTimeout(void) { return nnsim::kMaximumLoopTimeoutNs; }
