#include "api/model_options.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>

#include "api/run_error.h"

namespace nnfarm {
namespace {

constexpr int64_t kMostThreads = 1024;

// The player's settings that are options, too; it checks their values.
constexpr const char* kNnapiSettings[] = {
    "device", "preference", "priority", "cache-dir", "compile-timeout-ms", "execute-timeout-ms",
    "relaxed", "compute", "buffers", "sl-driver"};

bool IsNnapiSetting(const std::string& name) {
  return std::find(std::begin(kNnapiSettings), std::end(kNnapiSettings), name) !=
         std::end(kNnapiSettings);
}

Mode ParseMode(const std::string& text) {
  if (text == "auto") return Mode::kAuto;
  if (text == "nnapi") return Mode::kNnapi;
  if (text == "cpu") return Mode::kCpu;
  ThrowUsage("mode is auto, nnapi or cpu, not \"" + text + "\"");
}

}  // namespace

int64_t ParseCount(const std::string& option, const std::string& text, int64_t least,
                   int64_t most) {
  char* end = nullptr;
  errno = 0;
  const long long number = std::strtoll(text.c_str(), &end, 10);
  if (errno != 0 || text.empty() || *end != '\0' || number < least || number > most) {
    ThrowUsage(option + " is a number from " + std::to_string(least) + " to " +
               std::to_string(most) + ", not \"" + text + "\"");
  }
  return number;
}

bool ModelOptions::Knows(const std::string& name) {
  return name == "mode" || name == "nnapi-library" || name == "threads" || name == "cpu-variant" ||
         IsNnapiSetting(name);
}

void ModelOptions::Set(const std::string& name, const std::string& value) {
  if (name == "mode") {
    mode = ParseMode(value);
  } else if (name == "nnapi-library") {
    nnapi_library = value;
  } else if (name == "threads") {
    threads = ParseCount("threads", value, 0, kMostThreads);
  } else if (name == "cpu-variant") {
    cpu_variant = value;
  } else if (IsNnapiSetting(name)) {
    nnapi_settings.emplace_back(name, value);
  } else {
    ThrowUsage("unknown option \"" + name + "\"");
  }
}

}  // namespace nnfarm
