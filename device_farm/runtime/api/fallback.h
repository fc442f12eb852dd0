// A move to the CPU twin.
#ifndef NNFARM_API_FALLBACK_H_
#define NNFARM_API_FALLBACK_H_

#include <string>

#include "base/json_writer.h"

namespace nnfarm {

// Why the twin computes, and for which subgraph where one is to blame.
struct Fallback {
  std::string code;
  std::string detail;
  std::string subgraph;

  // Reads an NnapiError's message, `<code>: <detail> [<subgraph>]`.
  static Fallback FromMessage(const std::string& message);

  // Adds code, detail and, where there is one, subgraph.
  JsonObject& AddTo(JsonObject* object) const;
};

}  // namespace nnfarm

#endif  // NNFARM_API_FALLBACK_H_
