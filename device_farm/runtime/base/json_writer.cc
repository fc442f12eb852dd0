#include "base/json_writer.h"

#include <cmath>
#include <cstdio>

namespace nnfarm {
namespace {

std::string Quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted.push_back('\\');
      quoted.push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", static_cast<unsigned>(c));
      quoted += escaped;
    } else {
      quoted.push_back(c);
    }
  }
  quoted.push_back('"');
  return quoted;
}

// Three decimals: a nanosecond where the unit is a microsecond. JSON has no infinity.
std::string NumberText(double value) {
  if (!std::isfinite(value)) return "null";
  char text[64];
  std::snprintf(text, sizeof(text), "%.3f", value);
  return text;
}

template <typename Values, typename Render>
std::string ArrayText(const Values& values, Render render) {
  std::string text = "[";
  for (const auto& value : values) {
    if (text.size() > 1) text += ", ";
    text += render(value);
  }
  return text + "]";
}

}  // namespace

JsonObject& JsonObject::AddText(const char* key, const std::string& text) {
  if (!members_.empty()) members_ += ", ";
  members_ += Quote(key) + ": " + text;
  return *this;
}

JsonObject& JsonObject::Add(const char* key, std::string_view value) {
  return AddText(key, Quote(value));
}
JsonObject& JsonObject::Add(const char* key, bool value) {
  return AddText(key, value ? "true" : "false");
}
JsonObject& JsonObject::Add(const char* key, int64_t value) {
  return AddText(key, std::to_string(value));
}
JsonObject& JsonObject::Add(const char* key, double value) {
  return AddText(key, NumberText(value));
}
JsonObject& JsonObject::Add(const char* key, const std::vector<double>& values) {
  return AddText(key, ArrayText(values, NumberText));
}
JsonObject& JsonObject::Add(const char* key, const std::vector<std::string>& values) {
  return AddText(key, ArrayText(values, Quote));
}
JsonObject& JsonObject::Add(const char* key, const std::vector<int64_t>& values) {
  return AddText(key, ArrayText(values, [](int64_t value) { return std::to_string(value); }));
}
JsonObject& JsonObject::Add(const char* key, const std::vector<JsonObject>& values) {
  return AddText(key, JsonArrayText(values));
}
JsonObject& JsonObject::Add(const char* key, const JsonObject& value) {
  return AddText(key, value.Text());
}

std::string JsonArrayText(const std::vector<JsonObject>& values) {
  return ArrayText(values, [](const JsonObject& value) { return value.Text(); });
}

}  // namespace nnfarm
