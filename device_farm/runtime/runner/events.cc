#include "runner/events.h"

#include <unistd.h>

#include <cstdio>

namespace nnfarm {

JsonObject NewEvent(const char* name) {
  JsonObject event;
  event.Add("event", name);
  return event;
}

void Emit(const JsonObject& event) { EmitText(event.Text()); }

void EmitStart() {
  Emit(NewEvent("start")
           .Add("runner", NNFARM_VERSION)
           .Add("target", NNFARM_TARGET)
           .Add("pid", static_cast<int64_t>(getpid())));
}

void EmitText(const std::string& text) {
  std::fputs((text + "\n").c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace nnfarm
