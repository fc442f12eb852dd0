#include "base/json_reader.h"

#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/json.h>

#include <utility>

namespace nnfarm {
namespace {

namespace ffi = tvm::ffi;

// tvm_ffi's parser recurses without a limit; deeper text would overflow the stack.
constexpr int kMaxDepth = 64;

// Refuses what the parser would not survive. Brackets inside strings do not nest.
const char* FindHazard(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\0') return "contains a zero byte";
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) return "is nested too deep";
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return in_string ? "ends inside a string" : nullptr;
}

}  // namespace

JsonValue::JsonValue(ffi::Any value, std::string path)
    : value_(std::move(value)), path_(std::move(path)) {}

JsonValue JsonValue::Parse(std::string_view text, std::string name) {
  if (const char* hazard = FindHazard(text)) {
    throw ffi::Error("ValueError", name + " " + hazard, "");
  }
  ffi::String message;
  ffi::Any value = ffi::json::Parse(ffi::String(text.data(), text.size()), &message);
  if (!message.empty()) {
    throw ffi::Error("ValueError", name + " is not JSON: " + std::string(message), "");
  }
  return JsonValue(std::move(value), std::move(name));
}

bool JsonValue::Has(const char* key) const {
  const auto object = value_.as<ffi::json::Object>();
  if (!object.has_value()) Refuse("an object is expected");
  return object->count(ffi::String(key)) != 0;
}

JsonValue JsonValue::Get(const char* key) const {
  if (!Has(key)) Refuse(std::string("\"") + key + "\" is missing");
  return JsonValue(value_.as<ffi::json::Object>()->at(ffi::String(key)), path_ + "." + key);
}

std::vector<std::string> JsonValue::Keys() const {
  const auto object = value_.as<ffi::json::Object>();
  if (!object.has_value()) Refuse("an object is expected");
  std::vector<std::string> keys;
  keys.reserve(object->size());
  for (const auto& member : *object) {
    const auto key = member.first.as<ffi::String>();
    if (!key.has_value()) Refuse("a key is not a string");
    keys.emplace_back(key->data(), key->size());
  }
  return keys;
}

std::vector<JsonValue> JsonValue::Items() const {
  const auto array = value_.as<ffi::json::Array>();
  if (!array.has_value()) Refuse("an array is expected");
  std::vector<JsonValue> items;
  items.reserve(array->size());
  for (const ffi::Any& item : *array) {
    items.push_back(JsonValue(item, path_ + "[" + std::to_string(items.size()) + "]"));
  }
  return items;
}

bool JsonValue::IsNull() const { return value_ == nullptr; }

int64_t JsonValue::Int(int64_t least, int64_t most) const {
  const auto number = value_.as<int64_t>();
  if (!number.has_value()) Refuse("an integer is expected");
  if (*number < least || *number > most) {
    Refuse(std::to_string(*number) + " is outside " + std::to_string(least) + ".." +
           std::to_string(most));
  }
  return *number;
}

double JsonValue::Number() const {
  if (const auto number = value_.as<double>()) return *number;
  if (const auto number = value_.as<int64_t>()) return static_cast<double>(*number);
  Refuse("a number is expected");
}

bool JsonValue::Bool() const {
  const auto flag = value_.as<bool>();
  if (!flag.has_value()) Refuse("true or false is expected");
  return *flag;
}

std::string JsonValue::String() const {
  const auto text = value_.as<ffi::String>();
  if (!text.has_value()) Refuse("a string is expected");
  return std::string(text->data(), text->size());
}

void JsonValue::Refuse(const std::string& message) const {
  throw ffi::Error("ValueError", path_ + ": " + message, "");
}

}  // namespace nnfarm
