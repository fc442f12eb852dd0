// What compilations take, cold and from the cache.
#ifndef NNFARM_RUNNER_COMPILE_TIMES_H_
#define NNFARM_RUNNER_COMPILE_TIMES_H_

#include <optional>

#include "api/fallback.h"
#include "api/package.h"
#include "runner/options.h"

namespace nnfarm {

// Makes the folder of --cache-dir. Throws RunError (usage) where it is there already.
void MakeCacheDir(const Options& options);

// Compiles `package` twice, each time in a process of its own, so that nothing but the cache outlives
// the first; emits `compile_times`. An error of NNAPI emits nothing: whoever compiles next meets it
// again. Answers the reason not to try when the driver crashed or hung. Touches no NNAPI itself, and
// must be called before anybody does.
std::optional<Fallback> MeasureCompileTimes(const Options& options, const Package& package);

}  // namespace nnfarm

#endif  // NNFARM_RUNNER_COMPILE_TIMES_H_
