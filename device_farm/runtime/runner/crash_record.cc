#include "runner/crash_record.h"

#include <fcntl.h>
#include <tvm/ffi/error.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>

#include "api/run_error.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/json_writer.h"

namespace nnfarm {
namespace {

std::vector<std::string> Strings(const JsonValue& json) {
  std::vector<std::string> strings;
  for (const JsonValue& item : json.Items()) strings.push_back(item.String());
  return strings;
}

}  // namespace

CrashKey CrashKey::From(std::string_view nnapi_event, std::string_view subgraphs) {
  CrashKey key;
  const JsonValue nnapi = JsonValue::Parse(nnapi_event, "nnapi event");
  for (const JsonValue& device : nnapi.Get("devices").Items()) {
    key.devices.push_back(device.Get("name").String() + " " + device.Get("version").String());
  }
  const JsonValue descriptions = JsonValue::Parse(subgraphs, "subgraphs");
  for (const JsonValue& subgraph : descriptions.Items()) {
    key.subgraphs.push_back(subgraph.Get("content").String());
  }
  std::sort(key.subgraphs.begin(), key.subgraphs.end());
  return key;
}

void Crash::AddTo(const CrashKey& key, JsonObject* object) const {
  object->Add("devices", key.devices)
      .Add("subgraphs", key.subgraphs)
      .Add("code", code)
      .Add("detail", detail);
}

std::optional<Crash> FindCrash(const std::string& path, const CrashKey& key) {
  if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) return std::nullopt;
  try {
    std::istringstream lines(ReadText(path));
    for (std::string line; std::getline(lines, line);) {
      const JsonValue json = JsonValue::Parse(line, path);
      if (Strings(json.Get("devices")) == key.devices &&
          Strings(json.Get("subgraphs")) == key.subgraphs) {
        return Crash{json.Get("code").String(), json.Get("detail").String()};
      }
    }
    return std::nullopt;
  } catch (const tvm::ffi::Error& error) {
    ThrowFailed("crash record: " + error.message());
  }
}

void AppendCrash(const std::string& path, const CrashKey& key, const Crash& crash) {
  JsonObject json;
  crash.AddTo(key, &json);
  const std::string line = json.Text() + "\n";
  const File file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  // One write: runs side by side do not mix their lines.
  if (!file.is_open() ||
      write(file.descriptor(), line.data(), line.size()) != static_cast<ssize_t>(line.size()) ||
      fsync(file.descriptor()) != 0) {
    ThrowFailed("crash record " + path + ": " + ErrorText(errno));
  }
}

}  // namespace nnfarm
