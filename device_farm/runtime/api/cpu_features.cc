#include "api/cpu_features.h"

#include <algorithm>
#include <utility>

#include "api/run_error.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <fstream>
#include <sstream>
#endif

namespace nnfarm {
namespace {

constexpr char kAuto[] = "auto";
constexpr char kBaseline[] = "baseline";

#if defined(__aarch64__)
// Bits of the kernel's uapi asm/hwcap.h, which headers older than the features do not have. The
// kernel sets what all cores have.
struct HardwareBit {
  const char* name;
  unsigned long entry;
  int bit;
};
constexpr HardwareBit kHardwareBits[] = {
    {"asimdhp", AT_HWCAP, 10}, {"asimddp", AT_HWCAP, 20}, {"i8mm", AT_HWCAP2, 13}};
#endif

}  // namespace

std::vector<std::string> CpuFeatures() {
  std::vector<std::string> features;
#if defined(__aarch64__)
  for (const HardwareBit& one : kHardwareBits) {
    if ((getauxval(one.entry) >> one.bit & 1) != 0) features.emplace_back(one.name);
  }
#elif defined(__x86_64__)
  // Not by CPUID: the kernel also knows which registers it saves.
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("flags", 0) != 0) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::string word; words >> word;) features.push_back(word);
    break;
  }
#endif
  return features;
}

CpuChoice::CpuChoice(std::string wanted, std::vector<std::string> features)
    : wanted_(std::move(wanted)),
      features_(std::move(features)),
      found_(wanted_ == kAuto || wanted_ == kBaseline) {}

bool CpuChoice::Takes(const std::string& variant, const std::vector<std::string>& features) {
  if (variant.empty()) return true;
  if (wanted_ != kAuto && wanted_ != variant) return false;
  found_ = true;
  for (const std::string& feature : features) {
    if (std::find(features_.begin(), features_.end(), feature) != features_.end()) continue;
    if (wanted_ == kAuto) return false;
    ThrowUsage("cpu-variant: " + variant + " needs " + feature + ", which this processor lacks");
  }
  return true;
}

void CpuChoice::RequireFound() const {
  if (!found_) ThrowUsage("cpu-variant: the package has no code for \"" + wanted_ + "\"");
}

}  // namespace nnfarm
