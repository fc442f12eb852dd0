// The runner's command line.
#ifndef NNFARM_RUNNER_OPTIONS_H_
#define NNFARM_RUNNER_OPTIONS_H_

#include <cstdint>
#include <string>

namespace nnfarm {

enum class Mode { kAuto, kNnapi, kCpu };

struct Options {
  bool probe = false;
  bool help = false;
  std::string package;
  std::string inputs;
  std::string outputs;
  Mode mode = Mode::kAuto;
  std::string device;
  std::string nnapi_library = "libneuralnetworks.so";
  bool trial = true;
  int64_t trial_timeout_ms = 60000;
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
