#include "player/compilation.h"

#include <string>
#include <utility>

#include "base/log.h"
#include "player/nnapi_error.h"

namespace nnfarm {
namespace {

constexpr int kCachingLevel = 3;
constexpr int kPriorityLevel = 4;
constexpr int kTimeoutLevel = 4;

void Check(int result, const char* function) {
  nnapi::Check(result, fallback_code::kCompileFailed, function);
}

Owned<nnapi::Compilation> Create(const nnapi::Api& api, nnapi::Model* model,
                                 const std::vector<ChosenDevice>& devices) {
  if (devices.empty()) {
    return Make(api.ANeuralNetworksCompilation_free, fallback_code::kCompileFailed,
                "ANeuralNetworksCompilation_create", [&](nnapi::Compilation** made) {
                  return api.ANeuralNetworksCompilation_create(model, made);
                });
  }
  std::vector<const nnapi::Device*> handles;
  handles.reserve(devices.size());
  for (const ChosenDevice& device : devices) handles.push_back(device.info.handle);
  return Make(api.ANeuralNetworksCompilation_free, fallback_code::kCompileFailed,
              "ANeuralNetworksCompilation_createForDevices", [&](nnapi::Compilation** made) {
                return api.ANeuralNetworksCompilation_createForDevices(
                    model, handles.data(), static_cast<uint32_t>(handles.size()), made);
              });
}

void LogUnknown(const nnapi::Api& api, const char* setting) {
  LogLine(std::string(setting) + " is not known at feature level " +
          std::to_string(api.feature_level));
}

void SetPriority(const nnapi::Api& api, const PlayerSettings& settings,
                 nnapi::Compilation* compilation) {
  if (!settings.priority.has_value()) return;
  if (api.feature_level < kPriorityLevel) return LogUnknown(api, "priority");
  Check(api.ANeuralNetworksCompilation_setPriority(compilation, *settings.priority),
        "ANeuralNetworksCompilation_setPriority");
}

void SetCaching(const nnapi::Api& api, const PlayerSettings& settings, const Sha256Digest& token,
                nnapi::Compilation* compilation) {
  if (settings.cache_dir.empty()) return;
  if (api.feature_level < kCachingLevel) return LogUnknown(api, "cache-dir");
  const int result = api.ANeuralNetworksCompilation_setCaching(
      compilation, settings.cache_dir.c_str(), token.data());
  // A cache only saves time.
  if (result != nnapi::kNoError) {
    LogLine("ANeuralNetworksCompilation_setCaching: " + nnapi::ResultName(result) +
            "; compiling without a cache");
  }
}

void SetTimeout(const nnapi::Api& api, const std::vector<ChosenDevice>& devices,
                const PlayerSettings& settings, nnapi::Compilation* compilation) {
  const bool limited = settings.compile_timeout.count() > 0 || settings.execute_timeout.count() > 0;
  if (!limited) return;
  if (!CanLimitTime(api, devices)) {
    LogLine("NNAPI takes no time limits here: they need feature level 4 and one device; level " +
            std::to_string(api.feature_level) + ", " + std::to_string(devices.size()) +
            " devices");
    return;
  }
  if (settings.compile_timeout.count() == 0) return;
  Check(api.ANeuralNetworksCompilation_setTimeout(
            compilation, static_cast<uint64_t>(settings.compile_timeout.count())),
        "ANeuralNetworksCompilation_setTimeout");
}

}  // namespace

bool CanLimitTime(const nnapi::Api& api, const std::vector<ChosenDevice>& devices) {
  return api.feature_level >= kTimeoutLevel && devices.size() == 1;
}

Sha256Digest CacheToken(const EncodedModel& encoded, const std::vector<ChosenDevice>& devices) {
  std::string key(encoded.content.begin(), encoded.content.end());
  key += encoded.relaxed ? '1' : '0';
  for (const ChosenDevice& device : devices) {
    // NUL ends each text, so that no two lists read the same.
    key += device.info.name + '\0' + device.info.version + '\0';
  }
  return Sha256(key);
}

Owned<nnapi::Compilation> CompileModel(const nnapi::Api& api, nnapi::Model* model,
                                       const EncodedModel& encoded,
                                       const std::vector<ChosenDevice>& devices,
                                       const PlayerSettings& settings) {
  Owned<nnapi::Compilation> compilation = Create(api, model, devices);
  Check(api.ANeuralNetworksCompilation_setPreference(compilation.get(), settings.preference),
        "ANeuralNetworksCompilation_setPreference");
  SetPriority(api, settings, compilation.get());
  SetCaching(api, settings, CacheToken(encoded, devices), compilation.get());
  SetTimeout(api, devices, settings, compilation.get());
  Check(api.ANeuralNetworksCompilation_finish(compilation.get()),
        "ANeuralNetworksCompilation_finish");
  return compilation;
}

}  // namespace nnfarm
