#include "runner/events.h"

#include <cstdio>

namespace nnfarm {

JsonObject NewEvent(const char* name) {
  JsonObject event;
  event.Add("event", name);
  return event;
}

void Emit(const JsonObject& event) { EmitText(event.Text()); }

void EmitText(const std::string& text) {
  std::fputs((text + "\n").c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace nnfarm
