#include "api/fallback.h"

#include <algorithm>

namespace nnfarm {

Fallback Fallback::FromMessage(const std::string& message) {
  const size_t colon = message.find(": ");
  Fallback fallback{message.substr(0, colon), "", ""};
  if (colon != std::string::npos) fallback.detail = message.substr(colon + 2);
  // A fallback travels from the trial's process line by line; the loader's words may have several.
  std::replace(fallback.detail.begin(), fallback.detail.end(), '\n', ' ');
  const size_t bracket = fallback.detail.rfind(" [");
  if (bracket != std::string::npos && fallback.detail.back() == ']') {
    fallback.subgraph =
        fallback.detail.substr(bracket + 2, fallback.detail.size() - bracket - 3);
    fallback.detail.resize(bracket);
  }
  return fallback;
}

JsonObject& Fallback::AddTo(JsonObject* object) const {
  object->Add("code", code).Add("detail", detail);
  if (!subgraph.empty()) object->Add("subgraph", subgraph);
  return *object;
}

}  // namespace nnfarm
