#include "player/device_choice.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "player/nnapi_error.h"

namespace nnfarm {
namespace {

using Support = std::vector<char>;  // one flag an operation

Support SupportedOperations(const nnapi::Api& api, const nnapi::Model* model,
                            const nnapi::DeviceInfo& device, size_t operation_count) {
  // std::vector<bool> has no array of bool to give away.
  const std::unique_ptr<bool[]> flags(new bool[operation_count]());
  const nnapi::Device* handle = device.handle;
  nnapi::Check(
      api.ANeuralNetworksModel_getSupportedOperationsForDevices(model, &handle, 1, flags.get()),
      fallback_code::kCompileFailed, "ANeuralNetworksModel_getSupportedOperationsForDevices");
  return Support(flags.get(), flags.get() + operation_count);
}

// NAME, type:TYPE or not:NAME.
bool IsWanted(const nnapi::DeviceInfo& device, const std::string& wanted) {
  if (wanted.rfind("type:", 0) == 0) return device.type == wanted.substr(5);
  if (wanted.rfind("not:", 0) == 0) return device.name != wanted.substr(4);
  return device.name == wanted;
}

std::vector<nnapi::DeviceInfo> Candidates(const nnapi::Api& api, const std::string& wanted) {
  std::vector<nnapi::DeviceInfo> devices = nnapi::ListDevices(api);
  if (wanted.empty()) return devices;
  std::string names;
  std::vector<nnapi::DeviceInfo> matching;
  for (nnapi::DeviceInfo& device : devices) {
    names += " " + device.name + " (" + device.type + ")";
    if (IsWanted(device, wanted)) matching.push_back(std::move(device));
  }
  if (matching.empty()) {
    ThrowNnapiError(fallback_code::kCompileFailed,
                    "no NNAPI device is " + wanted + "; there are:" + names);
  }
  return matching;
}

// The first operation that no chosen device takes.
void RequireAllCovered(const Support& covered, const EncodedModel& encoded) {
  const auto gap = std::find(covered.begin(), covered.end(), 0);
  if (gap == covered.end()) return;
  const auto index = static_cast<size_t>(gap - covered.begin());
  ThrowNnapiError(fallback_code::kCompileFailed, "no device takes operation " +
                                                     std::to_string(index) + " " +
                                                     encoded.operations[index].name);
}

std::set<std::string> ExtensionsOf(const EncodedModel& encoded) {
  std::set<std::string> extensions;
  for (const EncodedOperand& operand : encoded.operands) extensions.insert(operand.extension);
  for (const EncodedOperation& operation : encoded.operations) {
    extensions.insert(operation.extension);
  }
  extensions.erase("");  // NNAPI's own types and operations
  return extensions;
}

bool HasExtension(const nnapi::Api& api, const nnapi::DeviceInfo& device,
                  const std::string& extension) {
  bool supported = false;
  nnapi::Check(api.ANeuralNetworksDevice_getExtensionSupport(device.handle, extension.c_str(),
                                                             &supported),
               fallback_code::kExtensionUnsupported, "ANeuralNetworksDevice_getExtensionSupport");
  return supported;
}

}  // namespace

void RequireExtensions(const nnapi::Api& api, const EncodedModel& encoded,
                       const std::string& wanted) {
  const std::set<std::string> extensions = ExtensionsOf(encoded);
  if (extensions.empty()) return;
  if (api.feature_level < 3) {
    ThrowNnapiError(fallback_code::kExtensionUnsupported,
                    *extensions.begin() + " needs feature level 3; this device has " +
                        std::to_string(api.feature_level));
  }
  const std::vector<nnapi::DeviceInfo> devices = Candidates(api, wanted);
  for (const std::string& extension : extensions) {
    const bool found =
        std::any_of(devices.begin(), devices.end(), [&](const nnapi::DeviceInfo& device) {
          return HasExtension(api, device, extension);
        });
    if (!found) ThrowNnapiError(fallback_code::kExtensionUnsupported, "no device has " + extension);
  }
}

std::vector<ChosenDevice> ChooseDevices(const nnapi::Api& api, const nnapi::Model* model,
                                        const EncodedModel& encoded, const std::string& wanted) {
  if (api.feature_level < 3) {
    if (wanted.empty()) return {};
    ThrowNnapiError(fallback_code::kCompileFailed,
                    "a device can be chosen from feature level 3; this library has " +
                        std::to_string(api.feature_level));
  }
  std::vector<nnapi::DeviceInfo> devices = Candidates(api, wanted);
  // The reference goes last, to fill what the others leave out.
  std::stable_partition(devices.begin(), devices.end(), [](const nnapi::DeviceInfo& device) {
    return device.name != nnapi::kReferenceDevice;
  });
  std::vector<ChosenDevice> chosen;
  Support covered(encoded.operations.size(), 0);
  for (nnapi::DeviceInfo& device : devices) {
    const bool complete = std::find(covered.begin(), covered.end(), 0) == covered.end();
    if (complete && device.name == nnapi::kReferenceDevice) continue;
    const Support support = SupportedOperations(api, model, device, encoded.operations.size());
    const auto count = static_cast<int64_t>(std::count(support.begin(), support.end(), 1));
    if (count == 0) continue;
    for (size_t i = 0; i < covered.size(); ++i) covered[i] = covered[i] | support[i];
    chosen.push_back({std::move(device), count});
  }
  RequireAllCovered(covered, encoded);
  return chosen;
}

}  // namespace nnfarm
