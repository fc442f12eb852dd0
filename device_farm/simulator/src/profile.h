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

// Faults seen on real phones; runs are counted from 1 in each process, 0 is never.
struct Quirks {
  std::set<std::string> fail;   // operations accepted by the compilation that fail when they run
  std::set<std::string> wrong;  // operations that answer zeros
  int64_t crash_at_run = 0;
  int64_t hang_at_run = 0;
  int64_t out_of_memory_at_run = 0;  // and ever after
  double first_run_us = 0;           // what the first run takes longer
  bool ignore_cache = false;         // compiles anew whatever was cached
};

struct DeviceSpec {
  std::string name;
  int32_t type = ANEURALNETWORKS_DEVICE_CPU;
  std::string version;
  int feature_level = kMaxFeatureLevel;
  std::set<std::string> denied;  // names of operations
  std::set<std::string> denied_types;  // names of operand types
  uint32_t max_rank = 0;               // 0: any
  std::set<std::string> extensions;
  bool relaxed_float16 = false;        // rounds each result of a relaxed model to float16
  Quirks quirks;
  bool reference = false;        // the CPU device every phone has; takes real time only
};

// Zero rates model nothing.
struct LatencyModel {
  double per_execution_us = 0;
  double per_operation_us = 0;
  double macs_per_us = 0;
  double bytes_per_us = 0;
  double compile_per_operation_us = 0;

  double Microseconds(double operations, double macs, double bytes) const;
};

// A device busy for longer than `throttle_after_us` takes `slowdown` times as long until it has
// been idle for as long.
struct Thermal {
  double throttle_after_us = 0;
  double slowdown = 1;
};

struct Profile {
  int feature_level = kMaxFeatureLevel;
  bool extensions_allowed = true;  // to the process that loads this library
  std::vector<DeviceSpec> devices;
  LatencyModel latency;
  Thermal thermal;
};

// False, with a sentence in `error`, for a statement that is unknown or malformed.
bool ParseProfile(std::istream& text, Profile* profile, std::string* error);

// The profile named by NNFARM_SIM_PROFILE, read once. An unreadable one is reported on standard
// error and yields a phone without devices.
const Profile& CurrentProfile();

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_PROFILE_H_
