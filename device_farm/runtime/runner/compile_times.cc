#include "runner/compile_times.h"

#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <string>

#include "api/player_calls.h"
#include "api/run_error.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/json_writer.h"
#include "runner/child_process.h"
#include "runner/events.h"

namespace nnfarm {
namespace {

// NNAPI has a compilation cache from here.
constexpr int64_t kCacheLevel = 3;

// Runs in the child. One line: the times of all subgraphs in microseconds, and the feature level.
void CompileAndSay(const Package& package, const Say& say) {
  try {
    const Session session = OpenSession(package.library.path, package.entry);
    CompileSubgraphs();
    double compile_us = 0.0;
    const std::string text = DescribeSubgraphs();
    for (const JsonValue& item : JsonValue::Parse(text, "subgraphs").Items()) {
      compile_us += item.Get("compile_us").Number();
    }
    const std::string nnapi = DescribeNnapi();
    const int64_t level =
        JsonValue::Parse(nnapi, "nnapi").Get("feature_level").Int(0, INT64_MAX);
    say(JsonObject().Add("us", compile_us).Add("feature_level", level).Text());
  } catch (const std::exception&) {
    // No line: the process that runs the model meets the same error, and tells it.
  }
}

ChildReport CompileInChild(const Options& options, const Package& package) {
  return RunInChild([&](const Say& say) { CompileAndSay(package, say); },
                    std::chrono::milliseconds(options.trial_timeout_ms));
}

std::optional<Fallback> FallbackOf(const ChildReport& report) {
  if (report.end == ChildEnd::kDone) return std::nullopt;
  const bool crashed = report.end == ChildEnd::kCrashed;
  return Fallback{crashed ? "nnapi.driver_crashed" : "nnapi.timeout",
                  "while --compile-times compiled: " + report.detail, ""};
}

}  // namespace

void MakeCacheDir(const Options& options) {
  const std::string folder = options.CacheDir();
  if (mkdir(folder.c_str(), 0755) != 0) {
    ThrowUsage("--compile-times makes the folder of --cache-dir: " + folder + ": " +
               ErrorText(errno));
  }
}

std::optional<Fallback> MeasureCompileTimes(const Options& options, const Package& package) {
  const ChildReport cold = CompileInChild(options, package);
  if (auto fallback = FallbackOf(cold); fallback.has_value()) return fallback;
  if (cold.lines.empty()) return std::nullopt;
  const JsonValue first = JsonValue::Parse(cold.lines[0], "the child's line");
  JsonObject event = NewEvent("compile_times").Add("cold_us", first.Get("us").Number());
  if (first.Get("feature_level").Int(0, INT64_MAX) >= kCacheLevel) {
    const ChildReport cached = CompileInChild(options, package);
    if (auto fallback = FallbackOf(cached); fallback.has_value()) return fallback;
    if (cached.lines.empty()) return std::nullopt;
    event.Add("cached_us", JsonValue::Parse(cached.lines[0], "line").Get("us").Number());
  }
  Emit(event);
  return std::nullopt;
}

}  // namespace nnfarm
