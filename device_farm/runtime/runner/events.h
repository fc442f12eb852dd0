// The runner's output: one JSON object a line on standard output.
#ifndef NNFARM_RUNNER_EVENTS_H_
#define NNFARM_RUNNER_EVENTS_H_

#include <string>

#include "base/json_writer.h"

namespace nnfarm {

// A move to the CPU twin: why, and for which subgraph where one is to blame.
struct Fallback {
  std::string code;
  std::string detail;
  std::string subgraph;

  // Reads an NnapiError's message, `<code>: <detail> [<subgraph>]`.
  static Fallback FromMessage(const std::string& message);

  JsonObject Event() const;
};

// An event to be filled with members.
JsonObject NewEvent(const char* name);

// Writes an event and flushes: the reader may be waiting, and the next step may crash.
void Emit(const JsonObject& event);

// Writes an event that is already text.
void EmitText(const std::string& text);

}  // namespace nnfarm

#endif  // NNFARM_RUNNER_EVENTS_H_
