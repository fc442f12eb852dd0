// Typed, bounds-checked reading of JSON; every refusal names the place in the document.
#ifndef NNFARM_BASE_JSON_READER_H_
#define NNFARM_BASE_JSON_READER_H_

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nnfarm {

// A JSON value with its path, for messages such as `operands[3].dims: ...`.
class JsonValue {
 public:
  // Parses a whole document called `name` in messages. Throws ffi::Error ("ValueError").
  static JsonValue Parse(std::string_view text, std::string name);

  bool Has(const char* key) const;
  JsonValue Get(const char* key) const;
  // Names of an object's members, in document order where the parser keeps it.
  std::vector<std::string> Keys() const;
  std::vector<JsonValue> Items() const;

  bool IsNull() const;
  int64_t Int(int64_t least, int64_t most) const;
  double Number() const;
  bool Bool() const;
  std::string String() const;

  // Throws ffi::Error ("ValueError") with this value's path before `message`.
  [[noreturn]] void Refuse(const std::string& message) const;

 private:
  JsonValue(tvm::ffi::Any value, std::string path);

  tvm::ffi::Any value_;
  std::string path_;
};

}  // namespace nnfarm

#endif  // NNFARM_BASE_JSON_READER_H_
