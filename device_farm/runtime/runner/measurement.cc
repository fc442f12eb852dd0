#include "runner/measurement.h"

#include <chrono>

#include "base/ffi_call.h"
#include "base/json_reader.h"
#include "player/nnapi_error.h"
#include "runner/events.h"
#include "runner/runner_error.h"
#include "runner/session.h"

namespace nnfarm {
namespace {

using Clock = std::chrono::steady_clock;

double MicrosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Loading touches no NNAPI: whatever fails here is the package's fault.
Session OpenSession(const std::string& library, const std::string& entry) {
  try {
    return Session(library, entry);
  } catch (const ffi::Error& error) {
    ThrowBadPackage(FileName(library) + ": " + error.message());
  }
}

void CompileSubgraphs() {
  try {
    CallGlobal("nnfarm.nnapi.compile_all");
  } catch (const ffi::Error& error) {
    if (error.kind() == kNnapiErrorKind) throw;
    // The weights are opened here: a missing or cut file.
    ThrowBadPackage(error.message());
  }
}

// An event a subgraph that was compiled; a library without any has none.
void EmitSubgraphs() {
  const auto text = CallGlobal("nnfarm.nnapi.describe_subgraphs").cast<ffi::String>();
  const JsonValue subgraphs =
      JsonValue::Parse(std::string_view(text.data(), text.size()), "subgraphs");
  for (const JsonValue& item : subgraphs.Items()) {
    std::vector<std::string> devices;
    for (const JsonValue& name : item.Get("devices").Items()) devices.push_back(name.String());
    std::vector<int64_t> supported;
    for (const JsonValue& count : item.Get("supported_operations").Items()) {
      supported.push_back(count.Int(0, INT64_MAX));
    }
    Emit(NewEvent("subgraph")
             .Add("symbol", item.Get("symbol").String())
             .Add("compile_us", item.Get("compile_us").Number())
             .Add("operations", item.Get("operations").Int(0, INT64_MAX))
             .Add("devices", devices)
             .Add("supported_operations", supported));
  }
}

double TimedRun(const Session& session, const InputFeed& inputs) {
  const Clock::time_point start = Clock::now();
  session.Run(inputs.tensors());
  return MicrosecondsSince(start);
}

std::vector<double> MeasureLatency(const Options& options, const Session& session,
                                   const InputFeed& inputs) {
  for (int64_t i = 0; i < options.warmup; ++i) TimedRun(session, inputs);
  const double least_us = static_cast<double>(options.min_duration_ms) * 1000.0;
  std::vector<double> samples_us;
  samples_us.reserve(static_cast<size_t>(options.iterations));
  double spent_us = 0.0;
  while (static_cast<int64_t>(samples_us.size()) < options.max_iterations) {
    if (static_cast<int64_t>(samples_us.size()) >= options.iterations && spent_us >= least_us) {
      break;
    }
    samples_us.push_back(TimedRun(session, inputs));
    spent_us += samples_us.back();
  }
  return samples_us;
}

void ComputeOutputs(const Package& package, const std::string& path, const Session& session,
                    InputFeed* inputs) {
  OutputWriter writer(package.outputs, inputs->sample_count(), path);
  for (int64_t sample = 0; sample < inputs->sample_count(); ++sample) {
    inputs->Load(sample);
    writer.Write(sample, session.Run(inputs->tensors()));
  }
  writer.Finish();
}

void SetNnapiSettings(const NnapiSettings& settings) {
  for (const auto& [name, value] : settings) {
    CallGlobal("nnfarm.nnapi.set_option", ffi::String(name), ffi::String(value));
  }
}

}  // namespace

void ConfigurePlayer(const Options& options, const Package& package) {
  CallGlobal("nnfarm.nnapi.set_package_dir", ffi::String(package.directory));
  CallGlobal("nnfarm.nnapi.set_library", ffi::String(options.nnapi_library));
  try {
    SetNnapiSettings(package.nnapi_settings);
  } catch (const ffi::Error& error) {
    ThrowBadPackage("manifest.json: nnapi_settings: " + error.message());
  }
  try {
    SetNnapiSettings(options.nnapi_settings);
  } catch (const ffi::Error& error) {
    ThrowUsage(error.message());
  }
}

void MeasureLibrary(const Options& options, const Package& package, const std::string& library,
                    InputFeed* inputs) {
  const Clock::time_point start = Clock::now();
  const Session session = OpenSession(library, package.entry);
  Emit(NewEvent("loaded").Add("library", FileName(library)).Add("load_us",
                                                                MicrosecondsSince(start)));
  if (library != package.cpu_twin) {
    CompileSubgraphs();
    EmitSubgraphs();
  }
  inputs->Load(0);
  const double first_run_us = TimedRun(session, *inputs);
  const std::vector<double> samples_us = MeasureLatency(options, session, *inputs);
  if (!options.outputs.empty()) ComputeOutputs(package, options.outputs, session, inputs);
  // Only now: a library that fails half-way has published nothing.
  Emit(NewEvent("first_run").Add("us", first_run_us));
  Emit(NewEvent("latency").Add("samples_us", samples_us));
  if (!options.outputs.empty()) {
    Emit(NewEvent("outputs")
             .Add("samples", inputs->sample_count())
             .Add("file", options.outputs));
  }
}

void TryLibrary(const Package& package, const std::string& library, InputFeed* inputs,
                const std::function<void(const std::string&)>& before_nnapi) {
  const Session session = OpenSession(library, package.entry);
  const auto subgraphs = CallGlobal("nnfarm.nnapi.describe_subgraphs").cast<ffi::String>();
  before_nnapi(std::string(subgraphs.data(), subgraphs.size()));
  CompileSubgraphs();
  inputs->Load(0);
  session.Run(inputs->tensors());
}

}  // namespace nnfarm
