// The player's registered functions, in C++ terms.
#ifndef NNFARM_API_PLAYER_CALLS_H_
#define NNFARM_API_PLAYER_CALLS_H_

#include <string>

#include "api/model_options.h"
#include "api/package.h"
#include "api/session.h"
#include "base/json_reader.h"
#include "base/json_writer.h"

namespace nnfarm {

// Tells the player where the package is, which library to use and how: the settings of the
// manifest, then those given. They are for libraries loaded afterwards, of the whole process.
// Throws RunError for a setting that is none.
void ConfigurePlayer(const ModelOptions& options, const Package& package);

// One more setting. Throws ffi::Error.
void SetPlayerOption(const std::string& name, const std::string& value);

// Loads a library of `package`. Touches no NNAPI: what fails is the package's fault, RunError.
Session OpenSession(const std::string& library, const std::string& entry);

// Compiles every loaded subgraph that is not compiled yet. Throws ffi::Error of kind NnapiError,
// RunError where the package is damaged.
void CompileSubgraphs();

// JSON array of all loaded subgraphs, oldest first.
std::string DescribeSubgraphs();

// Has NNAPI measure the runs that follow, where it can.
void MeasureDurations(bool measure);

// JSON array of all loaded subgraphs: what NNAPI says their last run took.
std::string DescribeDurations();

// Adds the members of one of them, which is compiled, to `object`.
void AddSubgraph(const JsonValue& subgraph, JsonObject* object);

// JSON object: this device's NNAPI.
std::string DescribeNnapi();

// The last part of `path`.
std::string FileName(const std::string& path);

}  // namespace nnfarm

#endif  // NNFARM_API_PLAYER_CALLS_H_
