// One library's whole run: load, compile, measure, compute outputs.
#ifndef NNFARM_RUNNER_MEASUREMENT_H_
#define NNFARM_RUNNER_MEASUREMENT_H_

#include <string>

#include "runner/options.h"
#include "runner/package.h"
#include "runner/tensor_files.h"

namespace nnfarm {

// Tells the player where the package is and which library and device to use.
void ConfigurePlayer(const Options& options, const std::string& package_dir);

// Loads `library`, compiles its subgraphs, measures sample 0 and computes every sample's outputs.
// Emits loaded, subgraph, first_run, latency and outputs. Throws ffi::Error and RunnerError.
void MeasureLibrary(const Options& options, const Package& package, const std::string& library,
                    InputFeed* inputs);

// Loads `library`, compiles its subgraphs and runs sample 0 once, saying nothing.
void TryLibrary(const Package& package, const std::string& library, InputFeed* inputs);

}  // namespace nnfarm

#endif  // NNFARM_RUNNER_MEASUREMENT_H_
