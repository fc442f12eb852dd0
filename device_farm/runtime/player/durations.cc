#include "player/durations.h"

#include <cstdint>
#include <limits>

namespace nnfarm {
namespace {

constexpr int kDurationLevel = 3;
// DurationCode of NNAPI.
constexpr int32_t kOnHardware = 0;
constexpr int32_t kInDriver = 1;
constexpr uint64_t kUnknown = std::numeric_limits<uint64_t>::max();

std::optional<double> Read(const nnapi::Api& api, const nnapi::Execution* execution,
                           int32_t code) {
  uint64_t nanoseconds = kUnknown;
  if (api.ANeuralNetworksExecution_getDuration(execution, code, &nanoseconds) != nnapi::kNoError ||
      nanoseconds == kUnknown) {
    return std::nullopt;
  }
  return static_cast<double>(nanoseconds) / 1000.0;
}

}  // namespace

void Durations::AddTo(JsonObject* object) const {
  if (hardware_us.has_value()) object->Add("hardware_us", *hardware_us);
  if (driver_us.has_value()) object->Add("driver_us", *driver_us);
}

bool CanMeasureDurations(const nnapi::Api& api, size_t device_count) {
  return api.feature_level >= kDurationLevel && device_count == 1 &&
         api.ANeuralNetworksExecution_setMeasureTiming != nullptr &&
         api.ANeuralNetworksExecution_getDuration != nullptr;
}

bool AskForDurations(const nnapi::Api& api, nnapi::Execution* execution) {
  return api.ANeuralNetworksExecution_setMeasureTiming(execution, true) == nnapi::kNoError;
}

Durations ReadDurations(const nnapi::Api& api, const nnapi::Execution* execution) {
  return {Read(api, execution, kOnHardware), Read(api, execution, kInDriver)};
}

}  // namespace nnfarm
