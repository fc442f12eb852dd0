#include "profile.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

namespace nnsim {
namespace {

const std::map<std::string, int32_t> kDeviceTypes = {
    {"other", ANEURALNETWORKS_DEVICE_OTHER},
    {"cpu", ANEURALNETWORKS_DEVICE_CPU},
    {"gpu", ANEURALNETWORKS_DEVICE_GPU},
    {"accelerator", ANEURALNETWORKS_DEVICE_ACCELERATOR},
};

DeviceSpec ReferenceDevice(int feature_level) {
  DeviceSpec device;
  device.name = "nnapi-reference";
  device.version = "nnfarm-simulator-1";
  device.feature_level = feature_level;
  device.reference = true;
  return device;
}

bool ParseLevel(const std::string& word, int* level) {
  if (word.size() != 1 || word[0] < '1' || word[0] > '0' + kMaxFeatureLevel) return false;
  *level = word[0] - '0';
  return true;
}

using Words = std::vector<std::string>;

bool ParseDevice(const Words& words, Profile* profile) {
  const auto type = words.size() == 5 ? kDeviceTypes.find(words[2]) : kDeviceTypes.end();
  DeviceSpec device;
  if (type == kDeviceTypes.end() || !ParseLevel(words[4], &device.feature_level)) return false;
  device.name = words[1];
  device.type = type->second;
  device.version = words[3];
  for (const DeviceSpec& other : profile->devices) {
    if (other.name == device.name) return false;
  }
  profile->devices.push_back(device);
  return true;
}

DeviceSpec* FindDevice(const std::string& name, Profile* profile) {
  for (DeviceSpec& device : profile->devices) {
    if (device.name == name) return &device;
  }
  return nullptr;
}

bool ParseNumber(const std::string& word, double* number) {
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  if (*end != '\0' || !(value >= 0) || value > 1e12) return false;
  *number = value;
  return true;
}

bool ParseCount(const std::string& word, int64_t* count) {
  double number = 0;
  if (!ParseNumber(word, &number) || number < 1) return false;
  *count = static_cast<int64_t>(number);
  return static_cast<double>(*count) == number;
}

bool ParseDeny(const Words& words, Profile* profile) {
  DeviceSpec* device = words.size() == 3 ? FindDevice(words[1], profile) : nullptr;
  if (device == nullptr) return false;
  (words[0] == "deny" ? device->denied : device->denied_types).insert(words[2]);
  return true;
}

bool ParseExtension(const Words& words, Profile* profile) {
  DeviceSpec* device = words.size() == 3 ? FindDevice(words[1], profile) : nullptr;
  return device != nullptr && device->extensions.insert(words[2]).second;
}

bool ParseRelaxed(const Words& words, Profile* profile) {
  DeviceSpec* device = words.size() == 2 ? FindDevice(words[1], profile) : nullptr;
  if (device != nullptr) device->relaxed_float16 = true;
  return device != nullptr;
}

bool ParseMaxRank(const Words& words, Profile* profile) {
  DeviceSpec* device = words.size() == 3 ? FindDevice(words[1], profile) : nullptr;
  int64_t rank = 0;
  if (device == nullptr || !ParseCount(words[2], &rank) || rank > UINT32_MAX) return false;
  device->max_rank = static_cast<uint32_t>(rank);
  return true;
}

bool ParseQuirk(const Words& words, Profile* profile) {
  DeviceSpec* device = words.size() == 4 ? FindDevice(words[1], profile) : nullptr;
  if (device == nullptr) return false;
  Quirks& quirks = device->quirks;
  const std::string &kind = words[2], &value = words[3];
  if (kind == "fail" || kind == "wrong") {
    return (kind == "fail" ? quirks.fail : quirks.wrong).insert(value).second;
  }
  if (kind == "crash_at_run") return ParseCount(value, &quirks.crash_at_run);
  if (kind == "hang_at_run") return ParseCount(value, &quirks.hang_at_run);
  if (kind == "out_of_memory_at_run") return ParseCount(value, &quirks.out_of_memory_at_run);
  if (kind == "first_run_us") return ParseNumber(value, &quirks.first_run_us);
  quirks.ignore_cache = kind == "ignore_cache" && value == "1";
  return quirks.ignore_cache;
}

// One of several numbers, by its name.
bool ParseField(const Words& words, const std::map<std::string, double*>& fields) {
  const auto field = words.size() == 3 ? fields.find(words[1]) : fields.end();
  return field != fields.end() && ParseNumber(words[2], field->second);
}

bool ParseLatency(const Words& words, Profile* profile) {
  LatencyModel& latency = profile->latency;
  return ParseField(words, {{"per_execution_us", &latency.per_execution_us},
                            {"per_operation_us", &latency.per_operation_us},
                            {"macs_per_us", &latency.macs_per_us},
                            {"bytes_per_us", &latency.bytes_per_us},
                            {"compile_per_operation_us", &latency.compile_per_operation_us}});
}

bool ParseThermal(const Words& words, Profile* profile) {
  return ParseField(words, {{"throttle_after_us", &profile->thermal.throttle_after_us},
                            {"slowdown", &profile->thermal.slowdown}});
}

bool ParseStatement(const Words& words, Profile* profile) {
  if (words[0] == "feature_level") {
    return words.size() == 2 && ParseLevel(words[1], &profile->feature_level);
  }
  if (words[0] == "device") return ParseDevice(words, profile);
  if (words[0] == "deny" || words[0] == "deny_type") return ParseDeny(words, profile);
  if (words[0] == "extension") return ParseExtension(words, profile);
  if (words[0] == "forbid_extensions") {
    profile->extensions_allowed = false;
    return words.size() == 1;
  }
  if (words[0] == "relaxed_float16") return ParseRelaxed(words, profile);
  if (words[0] == "max_rank") return ParseMaxRank(words, profile);
  if (words[0] == "quirk") return ParseQuirk(words, profile);
  if (words[0] == "latency") return ParseLatency(words, profile);
  if (words[0] == "thermal") return ParseThermal(words, profile);
  return false;
}

Profile Load() {
  Profile profile;
  const char* path = std::getenv("NNFARM_SIM_PROFILE");
  if (path != nullptr) {
    std::ifstream file(path);
    std::string error = "cannot be read";
    if (!file || !ParseProfile(file, &profile, &error)) {
      std::fprintf(stderr, "nnapi simulator: profile %s: %s\n", path, error.c_str());
      Profile broken;
      broken.feature_level = 1;
      return broken;
    }
  }
  profile.devices.push_back(ReferenceDevice(profile.feature_level));
  return profile;
}

}  // namespace

int64_t PublicFeatureLevel(int level) { return level <= 5 ? 26 + level : 1000000 + level; }

double LatencyModel::Microseconds(double operations, double macs, double bytes) const {
  double total = per_execution_us + per_operation_us * operations;
  if (macs_per_us > 0) total += macs / macs_per_us;
  if (bytes_per_us > 0) total += bytes / bytes_per_us;
  return total;
}

bool ParseProfile(std::istream& text, Profile* profile, std::string* error) {
  std::string line;
  for (int number = 1; std::getline(text, line); ++number) {
    std::istringstream fields(line.substr(0, line.find('#')));
    Words words;
    for (std::string word; fields >> word;) words.push_back(word);
    if (!words.empty() && !ParseStatement(words, profile)) {
      *error = "line " + std::to_string(number) + " is not understood: " + line;
      return false;
    }
  }
  return true;
}

const Profile& CurrentProfile() {
  static const Profile profile = Load();
  return profile;
}

}  // namespace nnsim
