#include "runner/run.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/ffi_call.h"
#include "base/file.h"
#include "player/nnapi_error.h"
#include "runner/child_process.h"
#include "runner/crash_record.h"
#include "runner/events.h"
#include "runner/measurement.h"
#include "runner/package.h"
#include "runner/runner_error.h"
#include "runner/tensor_files.h"

namespace nnfarm {
namespace {

// The child's last line when it got through, or failed in a way that is not NNAPI's: the parent
// then meets the same error itself and reports it in full.
constexpr char kNoFallback[] = "none";

void EmitStart() {
  Emit(NewEvent("start")
           .Add("runner", NNFARM_VERSION)
           .Add("target", NNFARM_TARGET)
           .Add("pid", static_cast<int64_t>(getpid())));
}

std::string NnapiEvent() {
  const auto members = CallGlobal("nnfarm.nnapi.probe").cast<ffi::String>();
  // `{...}` with the event's name put first.
  return "{\"event\": \"nnapi\", " + std::string(members.data() + 1, members.size() - 1);
}

// The event when the library itself crashes or hangs while it is asked.
void EmitUnknownNnapi(const std::string& detail) {
  Emit(NewEvent("nnapi")
           .Add("available", false)
           .Add("feature_level", int64_t{0})
           .Add("detail", detail)
           .Add("devices", std::vector<JsonObject>()));
}

ChildReport ProbeAnd(const Options& options, const std::function<void(const Say&)>& work) {
  const ChildReport report = RunInChild(
      [&](const Say& say) {
        say(NnapiEvent());
        work(say);
      },
      std::chrono::milliseconds(options.trial_timeout_ms));
  if (report.lines.empty()) {
    EmitUnknownNnapi("the NNAPI library fails when asked: " + report.detail);
  } else {
    EmitText(report.lines[0]);
  }
  return report;
}

// Lines after the nnapi event and the subgraphs: code, detail, subgraph; or kNoFallback.
void SayFallback(const Say& say, const Fallback& fallback) {
  say(fallback.code);
  say(fallback.detail);
  say(fallback.subgraph);
}

void RefuseRecorded(const Options& options, const std::string& subgraphs) {
  if (options.crash_record.empty()) return;
  const auto nnapi = CallGlobal("nnfarm.nnapi.probe").cast<ffi::String>();
  const auto key = CrashKey::From(std::string_view(nnapi.data(), nnapi.size()), subgraphs);
  const std::optional<Crash> crash = FindCrash(options.crash_record, key);
  if (crash.has_value()) {
    ThrowNnapiError(crash->code.c_str(), "on record, not tried again: " + crash->detail);
  }
}

// Runs in the child.
void TryAndSay(const Options& options, const Package& package, InputFeed* inputs, const Say& say) {
  try {
    TryLibrary(package, package.library, inputs, [&](const std::string& subgraphs) {
      say(subgraphs);
      RefuseRecorded(options, subgraphs);
    });
    say(kNoFallback);
  } catch (const ffi::Error& error) {
    if (error.kind() != kNnapiErrorKind) return say(kNoFallback);
    SayFallback(say, Fallback::FromMessage(error.message()));
  } catch (const RunnerError&) {
    say(kNoFallback);
  }
}

Fallback Record(const Options& options, const ChildReport& report, const Crash& crash) {
  // Without the subgraphs' line the driver failed before any of them was to blame.
  if (!options.crash_record.empty() && report.lines.size() >= 2) {
    AppendCrash(options.crash_record, CrashKey::From(report.lines[0], report.lines[1]), crash);
  }
  return Fallback{crash.code, crash.detail, ""};
}

// The first load, compilation and execution on NNAPI, in a child: a driver may crash or hang.
std::optional<Fallback> Trial(const Options& options, const Package& package, InputFeed* inputs) {
  // A damaged record must end the run here, not in the child, whose errors this process repeats.
  if (!options.crash_record.empty()) FindCrash(options.crash_record, CrashKey());
  const ChildReport report =
      ProbeAnd(options, [&](const Say& say) { TryAndSay(options, package, inputs, say); });
  switch (report.end) {
    case ChildEnd::kCrashed:
      return Record(options, report, {"nnapi.driver_crashed", report.detail});
    case ChildEnd::kTimedOut:
      return Record(options, report, {"nnapi.timeout", report.detail});
    case ChildEnd::kDone:
      break;
  }
  if (report.lines.size() < 5) return std::nullopt;
  return Fallback{report.lines[2], report.lines[3], report.lines[4]};
}

// Measures the NNAPI library; the reason when NNAPI did not do it.
std::optional<Fallback> MeasureNnapi(const Options& options, const Package& package,
                                     InputFeed* inputs) {
  try {
    MeasureLibrary(options, package, package.library, inputs);
    return std::nullopt;
  } catch (const ffi::Error& error) {
    if (error.kind() != kNnapiErrorKind) throw;
    return Fallback::FromMessage(error.message());
  }
}

// The engine whose numbers were published.
std::string MeasureWithTwin(const Options& options, const Package& package, InputFeed* inputs) {
  std::optional<Fallback> fallback;
  if (options.mode == Mode::kAuto && options.trial) {
    fallback = Trial(options, package, inputs);
  } else {
    EmitText(NnapiEvent());
  }
  if (!fallback.has_value()) fallback = MeasureNnapi(options, package, inputs);
  if (!fallback.has_value()) return package.PlannedEngine();
  if (options.mode == Mode::kNnapi) {
    throw RunnerError(ExitCode::kNnapiFailed, fallback->code, fallback->detail);
  }
  Emit(fallback->Event());
  MeasureLibrary(options, package, package.cpu_twin, inputs);
  return "cpu";
}

std::string Measure(const Options& options, const Package& package, InputFeed* inputs) {
  if (options.mode == Mode::kCpu || package.subgraph_count == 0) {
    const bool twin = options.mode == Mode::kCpu;
    MeasureLibrary(options, package, twin ? package.cpu_twin : package.library, inputs);
    return "cpu";
  }
  return MeasureWithTwin(options, package, inputs);
}

// TVM reads it once, when its thread pool starts.
void SetThreads(int64_t threads) {
  if (threads == 0) return;
  if (setenv("TVM_NUM_THREADS", std::to_string(threads).c_str(), 1) != 0) {
    ThrowFailed("setenv: " + ErrorText(errno));
  }
}

// The kernel's high-water mark of this program. getrusage's would do, had it not kept the mark of
// the process that started us, which may be far larger.
int64_t PeakRssBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes * 1024;
  }
  ThrowFailed("/proc/self/status does not tell VmHWM");
}

void EmitMemory() { Emit(NewEvent("memory").Add("peak_rss_bytes", PeakRssBytes())); }

}  // namespace

void Probe(const Options& options) {
  EmitStart();
  CallGlobal("nnfarm.nnapi.set_library", ffi::String(options.nnapi_library));
  ProbeAnd(options, [](const Say&) {});
}

void RunPackage(const Options& options) {
  EmitStart();
  const Package package = Package::Load(options.package);
  InputFeed inputs(package.inputs, options.inputs);
  SetThreads(options.threads);
  ConfigurePlayer(options, package);
  std::string engine;
  try {
    engine = Measure(options, package, &inputs);
  } catch (const ffi::Error& error) {
    ThrowFailed(error.kind() + ": " + error.message());
  }
  EmitMemory();
  Emit(NewEvent("end").Add("engine", engine));
}

}  // namespace nnfarm
