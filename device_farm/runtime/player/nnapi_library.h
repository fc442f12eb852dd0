// The process's NNAPI library: opened once, kept for good.
#ifndef NNFARM_PLAYER_NNAPI_LIBRARY_H_
#define NNFARM_PLAYER_NNAPI_LIBRARY_H_

#include <memory>

#include "base/json_writer.h"
#include "player/nnapi.h"
#include "player/settings.h"

namespace nnfarm {

// The library of the settings, or their support-library driver in its place; loaded at the first
// call. Throws NnapiError (nnapi.missing).
std::shared_ptr<const nnapi::Api> NnapiLibrary(const PlayerSettings& settings);

// The members of the runner's `nnapi` event. A library that is not there is an answer, no error.
JsonObject DescribeNnapi(const PlayerSettings& settings);

}  // namespace nnfarm

#endif  // NNFARM_PLAYER_NNAPI_LIBRARY_H_
