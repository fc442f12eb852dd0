// What the runner does, from options to exit code.
#ifndef NNFARM_RUNNER_RUN_H_
#define NNFARM_RUNNER_RUN_H_

#include "runner/options.h"

namespace nnfarm {

// Describes this device's NNAPI.
void Probe(const Options& options);

// Runs a package. Throws RunError when the run cannot be completed.
void RunPackage(const Options& options);

}  // namespace nnfarm

#endif  // NNFARM_RUNNER_RUN_H_
