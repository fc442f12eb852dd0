// Time of every call the virtual machine makes in an inference.
#ifndef NNFARM_RUNNER_OPERATION_TIMES_H_
#define NNFARM_RUNNER_OPERATION_TIMES_H_

#include <tvm/ffi/container/tensor.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "api/session.h"
#include "base/json_writer.h"

namespace nnfarm {

// Runs `inferences` with a clock around each call and returns one object a call, in the order of
// computation: name, kind (nnapi for one of `subgraphs`, cpu for a kernel, runtime for the machine's
// own work) and us, the median. The session keeps the clock: use it for nothing else afterwards.
// Throws ffi::Error and RunError.
std::vector<JsonObject> MeasureOperations(const Session& session,
                                          const std::vector<tvm::ffi::Tensor>& inputs,
                                          const std::set<std::string>& subgraphs,
                                          int64_t inferences);

}  // namespace nnfarm

#endif  // NNFARM_RUNNER_OPERATION_TIMES_H_
