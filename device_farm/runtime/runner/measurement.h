// One library's whole run: load, compile, measure, compute outputs.
#ifndef NNFARM_RUNNER_MEASUREMENT_H_
#define NNFARM_RUNNER_MEASUREMENT_H_

#include <functional>
#include <string>

#include "runner/options.h"
#include "runner/package.h"
#include "runner/tensor_files.h"

namespace nnfarm {

// Tells the player where the package is, which library to use and how: the settings of the
// manifest, then those of the command line. Throws RunnerError for a setting that is none.
void ConfigurePlayer(const Options& options, const Package& package);

// Loads `library`, compiles its subgraphs, measures sample 0 and computes every sample's outputs.
// Emits loaded, subgraph, first_run, latency and outputs. Throws ffi::Error and RunnerError.
void MeasureLibrary(const Options& options, const Package& package, const std::string& library,
                    InputFeed* inputs);

// Loads `library`, compiles its subgraphs and runs sample 0 once, saying nothing. `before_nnapi`
// gets the text of `nnfarm.nnapi.describe_subgraphs` between loading and compiling.
void TryLibrary(const Package& package, const std::string& library, InputFeed* inputs,
                const std::function<void(const std::string&)>& before_nnapi);

}  // namespace nnfarm

#endif  // NNFARM_RUNNER_MEASUREMENT_H_
