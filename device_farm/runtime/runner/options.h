// The runner's command line.
#ifndef NNFARM_RUNNER_OPTIONS_H_
#define NNFARM_RUNNER_OPTIONS_H_

#include <cstdint>
#include <string>

#include "api/model_options.h"

namespace nnfarm {

struct Options {
  bool probe = false;
  bool help = false;
  std::string bench;  // kernels to measure, in the place of a package
  std::string package;
  std::string inputs;
  std::string outputs;
  ModelOptions model;
  bool trial = true;
  int64_t trial_timeout_ms = 60000;
  std::string crash_record;  // empty: none is kept
  std::string affinity;      // big, all or a mask; empty: TVM binds its threads itself
  bool compile_times = false;
  bool per_op = false;
  int64_t warmup = 3;
  int64_t iterations = 20;
  int64_t min_duration_ms = 300;
  int64_t max_iterations = 1000;

  // The NNAPI setting cache-dir; empty: none.
  std::string CacheDir() const;

  // Throws RunError (usage).
  static Options Parse(int argc, char** argv);
};

// What `--help` prints.
const char* UsageText();

}  // namespace nnfarm

#endif  // NNFARM_RUNNER_OPTIONS_H_
