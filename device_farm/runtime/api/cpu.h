// The CPU's part: how many threads TVM's kernels use, and on which cores.
#ifndef NNFARM_API_CPU_H_
#define NNFARM_API_CPU_H_

#include <cstdint>
#include <string>
#include <vector>

namespace nnfarm {

// TVM reads both from the environment once, as its first thread pool starts: what the environment
// says already of waiting stays. `threads` 0: TVM's default. Throws RunError (failed).
void SetThreads(int64_t threads);

// CPUs of `choice`: `all` this process may use, `big`: those of them that are not the slowest kind,
// or a hexadecimal mask as taskset's. Throws RunError (usage) for a choice that is none.
std::vector<int> ChooseCpus(const std::string& choice);

// Binds this thread, and those it starts from now on, to `cpus`; TVM's pool binds none itself then.
// Throws RunError (usage) where the system refuses them.
void BindToCpus(const std::vector<int>& cpus);

// Has the pool of this thread use `threads`, also where TVM counts fewer big cores. Starts it: no
// fork may follow.
void StartThreadPool(int64_t threads);

}  // namespace nnfarm

#endif  // NNFARM_API_CPU_H_
