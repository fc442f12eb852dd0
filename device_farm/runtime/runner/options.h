// The runner's command line.
#ifndef NNFARM_RUNNER_OPTIONS_H_
#define NNFARM_RUNNER_OPTIONS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace nnfarm {

enum class Mode { kAuto, kNnapi, kCpu };

// NNAPI settings as the player takes them: names and values, in the order given.
using NnapiSettings = std::vector<std::pair<std::string, std::string>>;

struct Options {
  bool probe = false;
  bool help = false;
  std::string package;
  std::string inputs;
  std::string outputs;
  Mode mode = Mode::kAuto;
  std::string nnapi_library = "libneuralnetworks.so";
  NnapiSettings nnapi_settings;
  bool trial = true;
  int64_t trial_timeout_ms = 60000;
  std::string crash_record;  // empty: none is kept
  int64_t warmup = 3;
  int64_t iterations = 20;
  int64_t min_duration_ms = 300;
  int64_t max_iterations = 1000;
  int64_t threads = 0;

  // Throws RunnerError (usage).
  static Options Parse(int argc, char** argv);
};

// What `--help` prints.
const char* UsageText();

}  // namespace nnfarm

#endif  // NNFARM_RUNNER_OPTIONS_H_
