// A small pool of threads for the kernels.
#ifndef DEVICE_FARM_SIMULATOR_SRC_PARALLEL_H_
#define DEVICE_FARM_SIMULATOR_SRC_PARALLEL_H_

#include <cstddef>
#include <functional>

namespace nnsim {

// Runs body(begin, end) over pieces of [0, count) of at least `grain` each, on all cores. Returns
// when all is done. Calls from several executions at once share the pool: the first one has it, the
// others run on their own thread.
void ParallelFor(size_t count, size_t grain, const std::function<void(size_t, size_t)>& body);

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_PARALLEL_H_
