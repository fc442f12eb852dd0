#include "runner/run.h"

#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "api/cpu.h"
#include "api/cpu_features.h"
#include "api/fallback.h"
#include "api/package.h"
#include "api/player_calls.h"
#include "api/run_error.h"
#include "base/ffi_call.h"
#include "player/nnapi_error.h"
#include "runner/child_process.h"
#include "runner/compile_times.h"
#include "runner/crash_record.h"
#include "runner/events.h"
#include "runner/measurement.h"
#include "runner/tensor_files.h"

namespace nnfarm {
namespace {

// The child's last line when it got through, or failed in a way that is not NNAPI's: the parent
// then meets the same error itself and reports it in full.
constexpr char kNoFallback[] = "none";

std::string NnapiEvent() {
  // `{...}` with the event's name put first.
  return "{\"event\": \"nnapi\", " + DescribeNnapi().substr(1);
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
  const auto key = CrashKey::From(DescribeNnapi(), subgraphs);
  const std::optional<Crash> crash = FindCrash(options.crash_record, key);
  if (crash.has_value()) {
    ThrowNnapiError(crash->code.c_str(), "on record, not tried again: " + crash->detail);
  }
}

// Runs in the child.
void TryAndSay(const Options& options, const Package& package, InputFeed* inputs, const Say& say) {
  try {
    // A trial that filled the cache would leave no cold compilation to measure.
    if (options.compile_times) SetPlayerOption("cache-dir", "");
    TryLibrary(package, package.library, inputs, [&](const std::string& subgraphs) {
      say(subgraphs);
      RefuseRecorded(options, subgraphs);
    });
    say(kNoFallback);
  } catch (const ffi::Error& error) {
    if (error.kind() != kNnapiErrorKind) return say(kNoFallback);
    SayFallback(say, Fallback::FromMessage(error.message()));
  } catch (const RunError&) {
    say(kNoFallback);
  }
}

void EmitCrash(const CrashKey& key, const Crash& crash, bool is_new) {
  JsonObject event = NewEvent("crash");
  crash.AddTo(key, &event);
  Emit(event.Add("new", is_new));
}

Fallback Record(const Options& options, const ChildReport& report, const Crash& crash) {
  // Without the subgraphs' line the driver failed before any of them was to blame.
  if (report.lines.size() >= 2) {
    const auto key = CrashKey::From(report.lines[0], report.lines[1]);
    if (!options.crash_record.empty()) AppendCrash(options.crash_record, key, crash);
    EmitCrash(key, crash, /*is_new=*/true);
  }
  return Fallback{crash.code, crash.detail, ""};
}

void EmitCrashOnRecord(const Options& options, const ChildReport& report) {
  if (options.crash_record.empty()) return;
  const auto key = CrashKey::From(report.lines[0], report.lines[1]);
  const std::optional<Crash> crash = FindCrash(options.crash_record, key);
  if (crash.has_value()) EmitCrash(key, *crash, /*is_new=*/false);
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
  EmitCrashOnRecord(options, report);
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
  if (options.model.mode == Mode::kAuto && options.trial) {
    fallback = Trial(options, package, inputs);
  }
  if (!fallback.has_value() && options.compile_times) {
    fallback = MeasureCompileTimes(options, package);
  }
  if (options.model.mode != Mode::kAuto || !options.trial) EmitText(NnapiEvent());
  if (!fallback.has_value()) fallback = MeasureNnapi(options, package, inputs);
  if (!fallback.has_value()) return package.PlannedEngine();
  if (options.model.mode == Mode::kNnapi) {
    throw RunError(ExitCode::kNnapiFailed, fallback->code, fallback->detail);
  }
  JsonObject event = NewEvent("fallback");
  Emit(fallback->AddTo(&event));
  MeasureLibrary(options, package, package.cpu_twin, inputs);
  return "cpu";
}

std::string Measure(const Options& options, const Package& package, InputFeed* inputs) {
  if (options.model.mode == Mode::kCpu || package.subgraph_count == 0) {
    const bool twin = options.model.mode == Mode::kCpu;
    MeasureLibrary(options, package, twin ? package.cpu_twin : package.library, inputs);
    return "cpu";
  }
  return MeasureWithTwin(options, package, inputs);
}

// Threads started from here on stay on the CPUs chosen: TVM's, and those of NNAPI's library.
int64_t ChooseThreads(const Options& options) {
  int64_t threads = options.model.threads;
  if (!options.affinity.empty()) {
    const std::vector<int> cpus = ChooseCpus(options.affinity);
    BindToCpus(cpus);
    if (threads == 0) threads = static_cast<int64_t>(cpus.size());
    Emit(NewEvent("cpus")
             .Add("cpus", std::vector<int64_t>(cpus.begin(), cpus.end()))
             .Add("threads", threads));
  }
  SetThreads(threads);
  return threads;
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
  Emit(NewEvent("cpu").Add("features", CpuFeatures()));
  CallGlobal("nnfarm.nnapi.set_library", ffi::String(options.model.nnapi_library));
  ProbeAnd(options, [](const Say&) {});
}

void RunPackage(const Options& given) {
  EmitStart();
  Options options = given;
  const Package package = Package::Load(
      options.package, CpuChoice(options.model.cpu_variant, CpuFeatures()));
  InputFeed inputs(package.inputs, options.inputs);
  if (options.compile_times) MakeCacheDir(options);
  options.model.threads = ChooseThreads(given);
  ConfigurePlayer(options.model, package);
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
