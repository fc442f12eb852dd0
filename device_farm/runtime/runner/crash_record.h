// What crashed or hung a driver before, so that no retry meets it again.
#ifndef NNFARM_RUNNER_CRASH_RECORD_H_
#define NNFARM_RUNNER_CRASH_RECORD_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"

namespace nnfarm {

// Which drivers were asked for which subgraphs.
struct CrashKey {
  std::vector<std::string> devices;    // "name version", in NNAPI's order
  std::vector<std::string> subgraphs;  // SHA-256 of the encoded documents, sorted

  // From the `nnapi` event and the text of `nnfarm.nnapi.describe_subgraphs`.
  static CrashKey From(std::string_view nnapi_event, std::string_view subgraphs);
};

struct Crash {
  std::string code;
  std::string detail;

  // Adds the members of a line of the record.
  void AddTo(const CrashKey& key, JsonObject* object) const;
};

// The crash recorded for `key` in the file at `path`; a file that is not there records none.
// Throws RunError for a file that cannot be read or understood.
std::optional<Crash> FindCrash(const std::string& path, const CrashKey& key);

// Appends a line, on the disk when it returns. Throws RunError.
void AppendCrash(const std::string& path, const CrashKey& key, const Crash& crash);

}  // namespace nnfarm

#endif  // NNFARM_RUNNER_CRASH_RECORD_H_
