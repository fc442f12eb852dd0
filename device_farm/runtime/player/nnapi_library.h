// The process's NNAPI library: opened once, kept for good.
#ifndef NNFARM_PLAYER_NNAPI_LIBRARY_H_
#define NNFARM_PLAYER_NNAPI_LIBRARY_H_

#include <memory>
#include <string>

#include "base/json_writer.h"
#include "player/nnapi.h"

namespace nnfarm {

// The library at `path`, loaded at the first call. Throws NnapiError (nnapi.missing).
std::shared_ptr<const nnapi::Api> NnapiLibrary(const std::string& path);

// The members of the runner's `nnapi` event. A library that is not there is an answer, no error.
JsonObject DescribeNnapi(const std::string& path);

}  // namespace nnfarm

#endif  // NNFARM_PLAYER_NNAPI_LIBRARY_H_
