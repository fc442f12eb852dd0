#include "player/nnapi.h"

#include <dlfcn.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "player/nnapi_error.h"
#include "player/support_driver.h"

namespace nnfarm {
namespace nnapi {
namespace {

// More is no phone's answer, and asking for each would take for ever.
constexpr uint32_t kMostDevices = 256;

// NNAPI numbers levels 1 to 5 by Android API level (27 to 31) and later ones from 1000006.
int LevelFromCode(int64_t code) {
  if (code >= 1000006) return static_cast<int>(std::min<int64_t>(code - 1000000, 8));
  return static_cast<int>(std::clamp<int64_t>(code - 26, 0, 5));
}

class SymbolLoader {
 public:
  explicit SymbolLoader(std::function<void*(const char*)> find) : find_(std::move(find)) {}

  template <typename Pointer>
  bool Load(const char* name, Pointer* pointer) {
    *pointer = reinterpret_cast<Pointer>(find_(name));
    if (*pointer == nullptr && missing_.empty()) missing_ = name;
    return *pointer != nullptr;
  }

  // The first name that was not found since the last call.
  std::string TakeMissing() { return std::exchange(missing_, std::string()); }

 private:
  std::function<void*(const char*)> find_;
  std::string missing_;
};

enum class Origin { kLibrary, kDriver };

// The highest level whose entry points are all there.
int LoadEntryPoints(SymbolLoader* loader, Origin origin, Api* api) {
#define NNFARM_LOAD(name, unused) loader->Load(#name, &api->name);
  NNFARM_NNAPI_OPTIONAL(NNFARM_LOAD)
  loader->TakeMissing();
  NNFARM_NNAPI_LEVEL_1(NNFARM_LOAD)
  if (origin == Origin::kLibrary) {
    NNFARM_NNAPI_LIBRARY_ONLY(NNFARM_LOAD)
  }
  NNFARM_NNAPI_DESTRUCTORS(NNFARM_LOAD)
  if (std::string missing = loader->TakeMissing(); !missing.empty()) {
    ThrowNnapiError(fallback_code::kMissing, "the NNAPI library lacks " + missing);
  }
  NNFARM_NNAPI_LEVEL_2(NNFARM_LOAD)
  if (!loader->TakeMissing().empty()) return 1;
  NNFARM_NNAPI_LEVEL_3(NNFARM_LOAD)
  NNFARM_LOAD(ANeuralNetworksBurst_free, )
  if (!loader->TakeMissing().empty()) return 2;
  NNFARM_NNAPI_LEVEL_4(NNFARM_LOAD)
  if (!loader->TakeMissing().empty()) return 3;
  NNFARM_NNAPI_LEVEL_5(NNFARM_LOAD)
#undef NNFARM_LOAD
  return loader->TakeMissing().empty() ? 8 : 4;
}

// What the library says; before level 5 it cannot say it, and its entry points decide.
int ReportedLevel(SymbolLoader* loader) {
  int64_t (*ask)() = nullptr;
  return loader->Load("ANeuralNetworks_getRuntimeFeatureLevel", &ask) ? LevelFromCode(ask()) : 4;
}

Api LoadApi(SymbolLoader loader, Origin origin) {
  Api api;
  const int complete_level = LoadEntryPoints(&loader, origin, &api);
  api.feature_level = std::min(complete_level, ReportedLevel(&loader));
  if (api.feature_level < 1) {
    ThrowNnapiError(fallback_code::kMissing, "the NNAPI library reports no feature level");
  }
  return api;
}

void* OpenLibrary(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  const char* reason = dlerror();
  ThrowNnapiError(fallback_code::kMissing, reason != nullptr ? reason : "cannot open " + path);
}

constexpr int kMissedDeadlineTransient = 10;
constexpr int kMissedDeadlinePersistent = 11;

const char* DeviceTypeName(int32_t type) {
  switch (type) {
    case 1: return "other";
    case 2: return "cpu";
    case 3: return "gpu";
    case 4: return "accelerator";
    default: return "unknown";
  }
}

}  // namespace

Api Api::Load(const std::string& path) {
  void* library = OpenLibrary(path);
  return LoadApi(SymbolLoader([library](const char* name) { return dlsym(library, name); }),
                 Origin::kLibrary);
}

Api Api::LoadDriver(const std::string& path) {
  const SupportDriver driver(OpenLibrary(path), path);
  Api api = LoadApi(SymbolLoader([&](const char* name) { return driver.Find(name); }),
                    Origin::kDriver);
  // Its table starts with level 5: an older one would lack compilation without devices.
  if (api.feature_level < 5) {
    ThrowNnapiError(fallback_code::kMissing, path + " is a driver of feature level " +
                                                 std::to_string(api.feature_level) +
                                                 "; support libraries have 5 or later");
  }
  return api;
}

std::vector<DeviceInfo> ListDevices(const Api& api) {
  std::vector<DeviceInfo> devices;
  if (api.feature_level < 3) return devices;
  const auto check = [](int result, const char* function) {
    Check(result, fallback_code::kMissing, function);
  };
  const auto require = [](const void* made, const char* function) {
    RequireMade(made, fallback_code::kMissing, function);
  };
  uint32_t count = 0;
  check(api.ANeuralNetworks_getDeviceCount(&count), "ANeuralNetworks_getDeviceCount");
  if (count > kMostDevices) {
    ThrowNnapiError(fallback_code::kMissing, "ANeuralNetworks_getDeviceCount: " +
                                                 std::to_string(count) + " devices");
  }
  for (uint32_t index = 0; index < count; ++index) {
    Device* device = nullptr;
    const char* name = nullptr;
    const char* version = nullptr;
    int32_t type = 0;
    int64_t level = 0;
    check(api.ANeuralNetworks_getDevice(index, &device), "ANeuralNetworks_getDevice");
    require(device, "ANeuralNetworks_getDevice");
    check(api.ANeuralNetworksDevice_getName(device, &name), "ANeuralNetworksDevice_getName");
    require(name, "ANeuralNetworksDevice_getName");
    check(api.ANeuralNetworksDevice_getType(device, &type), "ANeuralNetworksDevice_getType");
    check(api.ANeuralNetworksDevice_getVersion(device, &version),
          "ANeuralNetworksDevice_getVersion");
    require(version, "ANeuralNetworksDevice_getVersion");
    check(api.ANeuralNetworksDevice_getFeatureLevel(device, &level),
          "ANeuralNetworksDevice_getFeatureLevel");
    devices.push_back({device, name, DeviceTypeName(type), version, LevelFromCode(level)});
  }
  return devices;
}

std::string ResultName(int result) {
  static constexpr const char* kNames[] = {
      "NO_ERROR",           "OUT_OF_MEMORY",     "INCOMPLETE",
      "UNEXPECTED_NULL",    "BAD_DATA",          "OP_FAILED",
      "BAD_STATE",          "UNMAPPABLE",        "OUTPUT_INSUFFICIENT_SIZE",
      "UNAVAILABLE_DEVICE", "MISSED_DEADLINE_TRANSIENT", "MISSED_DEADLINE_PERSISTENT",
      "RESOURCE_EXHAUSTED_TRANSIENT", "RESOURCE_EXHAUSTED_PERSISTENT", "DEAD_OBJECT"};
  constexpr int kCount = sizeof(kNames) / sizeof(kNames[0]);
  const char* name = result >= 0 && result < kCount ? kNames[result] : "UNKNOWN";
  return std::string(name) + " (" + std::to_string(result) + ")";
}

void Check(int result, const char* code, const char* function) {
  if (result == kNoError) return;
  if (result == kMissedDeadlineTransient || result == kMissedDeadlinePersistent) {
    code = fallback_code::kTimeout;
  }
  ThrowNnapiError(code, std::string(function) + ": " + ResultName(result));
}

void RequireMade(const void* made, const char* code, const char* function) {
  if (made == nullptr) ThrowNnapiError(code, std::string(function) + ": no error, and no result");
}

}  // namespace nnapi
}  // namespace nnfarm
