#include "player/nnapi_library.h"

#include <tvm/ffi/error.h>

#include <map>
#include <mutex>

namespace nnfarm {

std::shared_ptr<const nnapi::Api> NnapiLibrary(const std::string& path) {
  static std::mutex mutex;
  static auto* libraries = new std::map<std::string, std::shared_ptr<const nnapi::Api>>();
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = libraries->find(path);
  if (found != libraries->end()) return found->second;
  auto api = std::make_shared<const nnapi::Api>(nnapi::Api::Load(path));
  libraries->emplace(path, api);
  return api;
}

JsonObject DescribeNnapi(const std::string& path) {
  JsonObject description;
  try {
    const auto api = NnapiLibrary(path);
    std::vector<JsonObject> devices;
    for (const nnapi::DeviceInfo& device : nnapi::ListDevices(*api)) {
      devices.push_back(JsonObject()
                            .Add("name", device.name)
                            .Add("type", device.type)
                            .Add("version", device.version)
                            .Add("feature_level", static_cast<int64_t>(device.feature_level)));
    }
    return description.Add("available", true)
        .Add("feature_level", static_cast<int64_t>(api->feature_level))
        .Add("detail", "")
        .Add("devices", devices);
  } catch (const tvm::ffi::Error& error) {
    return description.Add("available", false)
        .Add("feature_level", int64_t{0})
        .Add("detail", error.message().substr(error.message().find(": ") + 2))
        .Add("devices", std::vector<JsonObject>());
  }
}

}  // namespace nnfarm
