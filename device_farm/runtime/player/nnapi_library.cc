#include "player/nnapi_library.h"

#include <tvm/ffi/error.h>

#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace nnfarm {

std::shared_ptr<const nnapi::Api> NnapiLibrary(const PlayerSettings& settings) {
  using Key = std::pair<bool, std::string>;  // whether it is a driver, and its path
  static std::mutex mutex;
  static auto* libraries = new std::map<Key, std::shared_ptr<const nnapi::Api>>();
  const bool is_driver = !settings.sl_driver.empty();
  const std::string& path = is_driver ? settings.sl_driver : settings.library;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = libraries->find(Key(is_driver, path));
  if (found != libraries->end()) return found->second;
  auto api = std::make_shared<const nnapi::Api>(is_driver ? nnapi::Api::LoadDriver(path)
                                                          : nnapi::Api::Load(path));
  libraries->emplace(Key(is_driver, path), api);
  return api;
}

JsonObject DescribeNnapi(const PlayerSettings& settings) {
  JsonObject description;
  try {
    const auto api = NnapiLibrary(settings);
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
