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

bool ParseDeny(const Words& words, Profile* profile) {
  if (words.size() != 3) return false;
  for (DeviceSpec& device : profile->devices) {
    if (device.name == words[1]) {
      device.denied.insert(words[2]);
      return true;
    }
  }
  return false;
}

bool ParseLatency(const Words& words, Profile* profile) {
  LatencyModel& latency = profile->latency;
  const std::map<std::string, double*> fields = {
      {"per_execution_us", &latency.per_execution_us},
      {"per_operation_us", &latency.per_operation_us},
      {"macs_per_us", &latency.macs_per_us},
      {"bytes_per_us", &latency.bytes_per_us},
  };
  const auto field = words.size() == 3 ? fields.find(words[1]) : fields.end();
  if (field == fields.end()) return false;
  char* end = nullptr;
  const double value = std::strtod(words[2].c_str(), &end);
  if (*end != '\0' || !(value >= 0) || value > 1e12) return false;
  *field->second = value;
  return true;
}

bool ParseStatement(const Words& words, Profile* profile) {
  if (words[0] == "feature_level") {
    return words.size() == 2 && ParseLevel(words[1], &profile->feature_level);
  }
  if (words[0] == "device") return ParseDevice(words, profile);
  if (words[0] == "deny") return ParseDeny(words, profile);
  if (words[0] == "latency") return ParseLatency(words, profile);
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
