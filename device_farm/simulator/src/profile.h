// The phone this library plays: feature level, devices, latency (docs/reference/virtual-phone.md).
#ifndef DEVICE_FARM_SIMULATOR_SRC_PROFILE_H_
#define DEVICE_FARM_SIMULATOR_SRC_PROFILE_H_

#include <cstdint>
#include <istream>
#include <set>
#include <string>
#include <vector>

#include "nnapi.h"

namespace nnsim {

constexpr int kMaxFeatureLevel = 8;

// What a feature level is called by the API: 27 to 31, then 1000006 and up.
int64_t PublicFeatureLevel(int level);

struct DeviceSpec {
  std::string name;
  int32_t type = ANEURALNETWORKS_DEVICE_CPU;
  std::string version;
  int feature_level = kMaxFeatureLevel;
  std::set<std::string> denied;  // names of operations
  bool reference = false;        // the CPU device every phone has; takes real time only

  bool Supports(const std::string& operation, int level) const {
    return level <= feature_level && denied.count(operation) == 0;
  }
};

// Zero rates model nothing.
struct LatencyModel {
  double per_execution_us = 0;
  double per_operation_us = 0;
  double macs_per_us = 0;
  double bytes_per_us = 0;

  double Microseconds(double operations, double macs, double bytes) const;
};

struct Profile {
  int feature_level = kMaxFeatureLevel;
  std::vector<DeviceSpec> devices;
  LatencyModel latency;
};

// False, with a sentence in `error`, for a statement that is unknown or malformed.
bool ParseProfile(std::istream& text, Profile* profile, std::string* error);

// The profile named by NNFARM_SIM_PROFILE, read once. An unreadable one is reported on standard
// error and yields a phone without devices.
const Profile& CurrentProfile();

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_PROFILE_H_
