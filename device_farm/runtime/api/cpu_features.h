// What this device's processor can do beyond its ABI's baseline, and which code that lets run.
#ifndef NNFARM_API_CPU_FEATURES_H_
#define NNFARM_API_CPU_FEATURES_H_

#include <string>
#include <vector>

namespace nnfarm {

// Names as Linux gives them in /proc/cpuinfo, of all cores; on ABIs without variants none.
std::vector<std::string> CpuFeatures();

// Chooses among the libraries of a package that do the same.
class CpuChoice {
 public:
  // `wanted`: `auto`, `baseline` or the name of a variant.
  CpuChoice(std::string wanted, std::vector<std::string> features);

  // Whether the library for `variant` (empty: the baseline), which needs `features`, is to be taken
  // before those asked about earlier. Throws RunError (usage) for the variant that is wanted by name
  // where the processor lacks a feature.
  bool Takes(const std::string& variant, const std::vector<std::string>& features);

  // Throws RunError (usage) where a variant is wanted by name that was not asked about.
  void RequireFound() const;

 private:
  std::string wanted_;
  std::vector<std::string> features_;
  bool found_;
};

}  // namespace nnfarm

#endif  // NNFARM_API_CPU_FEATURES_H_
