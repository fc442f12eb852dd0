// Building one JSON object, member by member, in the order written.
#ifndef NNFARM_BASE_JSON_WRITER_H_
#define NNFARM_BASE_JSON_WRITER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nnfarm {

class JsonObject {
 public:
  JsonObject& Add(const char* key, std::string_view value);
  // Keeps a literal from choosing the bool overload.
  JsonObject& Add(const char* key, const char* value) { return Add(key, std::string_view(value)); }
  JsonObject& Add(const char* key, bool value);
  JsonObject& Add(const char* key, int64_t value);
  JsonObject& Add(const char* key, double value);
  JsonObject& Add(const char* key, const std::vector<double>& values);
  JsonObject& Add(const char* key, const std::vector<std::string>& values);
  JsonObject& Add(const char* key, const std::vector<int64_t>& values);
  JsonObject& Add(const char* key, const std::vector<JsonObject>& values);
  JsonObject& Add(const char* key, const JsonObject& value);

  std::string Text() const { return "{" + members_ + "}"; }

 private:
  JsonObject& AddText(const char* key, const std::string& text);

  std::string members_;
};

// `[a, b]` of whole objects.
std::string JsonArrayText(const std::vector<JsonObject>& values);

}  // namespace nnfarm

#endif  // NNFARM_BASE_JSON_WRITER_H_
