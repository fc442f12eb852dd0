#include "player/settings.h"

#include <tvm/ffi/error.h>

#include <map>
#include <utility>

namespace nnfarm {
namespace {

constexpr int64_t kMostMilliseconds = 24 * 3600 * 1000;

[[noreturn]] void Refuse(const std::string& message) {
  throw tvm::ffi::Error("ValueError", message, "");
}

template <typename Value>
Value Choose(const std::string& name, const std::string& given,
             const std::map<std::string, Value>& values) {
  const auto found = values.find(given);
  if (found != values.end()) return found->second;
  std::string known;
  for (const auto& entry : values) known += " " + entry.first;
  Refuse(name + " is one of" + known + ", not \"" + given + "\"");
}

std::chrono::nanoseconds ParseMilliseconds(const std::string& name, const std::string& given) {
  int64_t number = 0;
  for (const char digit : given) {
    // The limit is far below the type's: it is met before a digit more could overflow.
    const bool good = digit >= '0' && digit <= '9' && number <= kMostMilliseconds;
    number = good ? number * 10 + (digit - '0') : kMostMilliseconds + 1;
  }
  if (given.empty() || number > kMostMilliseconds) {
    Refuse(name + " is a number from 0 to " + std::to_string(kMostMilliseconds) + ", not \"" +
           given + "\"");
  }
  return std::chrono::milliseconds(number);
}

}  // namespace

void PlayerSettings::Set(const std::string& name, const std::string& value) {
  if (name == "device") {
    device = value;
  } else if (name == "cache-dir") {
    cache_dir = value;
  } else if (name == "sl-driver") {
    sl_driver = value;
  } else if (name == "buffers") {
    buffers = Choose<Buffers>(name, value,
                              {{"pointer", Buffers::kPointer}, {"memory", Buffers::kMemory}});
  } else if (name == "preference") {
    preference = Choose<int32_t>(
        name, value, {{"low-power", 0}, {"fast-single-answer", 1}, {"sustained-speed", 2}});
  } else if (name == "priority") {
    priority = Choose<int32_t>(name, value, {{"low", 90}, {"medium", 100}, {"high", 110}});
  } else if (name == "relaxed") {
    relaxed = Choose<bool>(name, value, {{"false", false}, {"true", true}});
  } else if (name == "compile-timeout-ms") {
    compile_timeout = ParseMilliseconds(name, value);
  } else if (name == "execute-timeout-ms") {
    execute_timeout = ParseMilliseconds(name, value);
  } else if (name == "compute") {
    compute = Choose<ComputeCall>(name, value,
                                  {{"auto", ComputeCall::kAuto},
                                   {"burst", ComputeCall::kBurst},
                                   {"sync", ComputeCall::kSync},
                                   {"async", ComputeCall::kAsync}});
  } else {
    Refuse("unknown NNAPI setting \"" + name + "\"");
  }
}

}  // namespace nnfarm
