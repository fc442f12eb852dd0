// `--bench`: kernels in several schedules, measured against each other.
#ifndef NNFARM_RUNNER_BENCH_H_
#define NNFARM_RUNNER_BENCH_H_

#include <string>

namespace nnfarm {

// Measures the kernels of the bench at `path` until its time is over, and writes an event for each.
// Throws RunError.
void RunBench(const std::string& path);

}  // namespace nnfarm

#endif  // NNFARM_RUNNER_BENCH_H_
