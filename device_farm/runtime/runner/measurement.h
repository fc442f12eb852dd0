// One library's whole run: load, compile, measure, compute outputs.
#ifndef NNFARM_RUNNER_MEASUREMENT_H_
#define NNFARM_RUNNER_MEASUREMENT_H_

#include <functional>
#include <string>

#include "api/package.h"
#include "runner/options.h"
#include "runner/tensor_files.h"

namespace nnfarm {

// Loads `library`, compiles its subgraphs, measures sample 0 and computes every sample's outputs.
// Emits loaded, subgraph, compile_times, first_run, latency, outputs and operations. Throws ffi::Error and RunError.
void MeasureLibrary(const Options& options, const Package& package, const Library& library,
                    InputFeed* inputs);

// Loads `library`, compiles its subgraphs and runs sample 0 once, saying nothing. `before_nnapi`
// gets DescribeSubgraphs' text between loading and compiling.
void TryLibrary(const Package& package, const Library& library, InputFeed* inputs,
                const std::function<void(const std::string&)>& before_nnapi);

}  // namespace nnfarm

#endif  // NNFARM_RUNNER_MEASUREMENT_H_
