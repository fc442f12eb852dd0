// The runner's output: one JSON object a line on standard output.
#ifndef NNFARM_RUNNER_EVENTS_H_
#define NNFARM_RUNNER_EVENTS_H_

#include <string>

#include "base/json_writer.h"

namespace nnfarm {

// An event to be filled with members.
JsonObject NewEvent(const char* name);

// Writes an event and flushes: the reader may be waiting, and the next step may crash.
void Emit(const JsonObject& event);

// The event that every use of the runner begins with.
void EmitStart();

// Writes an event that is already text.
void EmitText(const std::string& text);

}  // namespace nnfarm

#endif  // NNFARM_RUNNER_EVENTS_H_
