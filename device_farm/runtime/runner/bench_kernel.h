// One kernel's schedules, run in this process. For a child: a schedule may crash or hang.
#ifndef NNFARM_RUNNER_BENCH_KERNEL_H_
#define NNFARM_RUNNER_BENCH_KERNEL_H_

#include <chrono>
#include <cstdint>
#include <vector>

#include "runner/bench_file.h"
#include "runner/bench_timing.h"
#include "runner/child_process.h"

namespace nnfarm {

constexpr int kScreenedRounds = 3;
constexpr int kFinalRounds = 21;

// Tries the candidates from `first` on, on one thread, until `deadline`. One JSON object a line:
//   {"ruled_us": [..]}                     the rules' schedule alone, before all else
//   {"begin": 3}                           before each candidate
//   {"candidate": 3, "ratio": 0.9}         its time over the rules'
//   {"candidate": 3, "ratio": -1.0}        it computes something else
//   {"error": ".."}                        what the library says; the last one
void ScreenAndSay(const BenchKernel& kernel, int64_t first,
                  std::chrono::steady_clock::time_point deadline, const Say& say);

// Measures one candidate against the rules' schedule in kFinalRounds: `{"theirs": [..],
// "mine": [..]}`, of one thread's processor time, or of wall time where there are more threads; or
// `{"error": ".."}`.
void CompareAndSay(const BenchKernel& kernel, int64_t candidate, int64_t threads, const Say& say);

}  // namespace nnfarm

#endif  // NNFARM_RUNNER_BENCH_KERNEL_H_
