#include "runner/measurement.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "api/cpu.h"
#include "api/player_calls.h"
#include "api/session.h"
#include "base/json_reader.h"
#include "runner/events.h"
#include "runner/operation_times.h"

namespace nnfarm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kProfiledInferences = 20;

double MicrosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// The symbols of the subgraphs that were compiled; a library without any has none.
std::set<std::string> EmitSubgraphs() {
  const std::string text = DescribeSubgraphs();
  std::set<std::string> symbols;
  for (const JsonValue& item : JsonValue::Parse(text, "subgraphs").Items()) {
    JsonObject event = NewEvent("subgraph");
    AddSubgraph(item, &event);
    Emit(event);
    symbols.insert(item.Get("symbol").String());
  }
  return symbols;
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

void EmitOperations(const Options& options, const Session& session, const InputFeed& inputs,
                    const std::set<std::string>& subgraphs) {
  const int64_t inferences = std::min(options.iterations, kProfiledInferences);
  Emit(NewEvent("operations")
           .Add("inferences", inferences)
           .Add("operations",
                MeasureOperations(session, inputs.tensors(), subgraphs, inferences)));
}

// Everything once a library is loaded and compiled. What it measures is told only when all of it is
// there: a library that fails half-way has published nothing.
void MeasureSession(const Options& options, const Package& package, const Session& session,
                    InputFeed* inputs) {
  inputs->Load(0);
  const double first_run_us = TimedRun(session, *inputs);
  const std::vector<double> samples_us = MeasureLatency(options, session, *inputs);
  if (!options.outputs.empty()) ComputeOutputs(package, options.outputs, session, inputs);
  Emit(NewEvent("first_run").Add("us", first_run_us));
  Emit(NewEvent("latency").Add("samples_us", samples_us));
  if (!options.outputs.empty()) {
    Emit(NewEvent("outputs")
             .Add("samples", inputs->sample_count())
             .Add("file", options.outputs));
  }
}

}  // namespace

void MeasureLibrary(const Options& options, const Package& package, const Library& library,
                    InputFeed* inputs) {
  // Bound threads only: TVM binds them itself otherwise. Not earlier, as the trial forks.
  if (!options.affinity.empty()) StartThreadPool(options.model.threads);
  const bool has_subgraphs = library.path != package.cpu_twin.path;
  const Clock::time_point start = Clock::now();
  const Session session = OpenSession(library.path, package.entry);
  JsonObject loaded = NewEvent("loaded");
  loaded.Add("library", FileName(library.path)).Add("load_us", MicrosecondsSince(start));
  if (!library.cpu_variant.empty()) loaded.Add("cpu_variant", library.cpu_variant);
  Emit(loaded);
  std::set<std::string> subgraphs;
  if (has_subgraphs) {
    CompileSubgraphs();
    subgraphs = EmitSubgraphs();
  }
  MeasureSession(options, package, session, inputs);
  if (options.per_op) EmitOperations(options, session, *inputs, subgraphs);
}

void TryLibrary(const Package& package, const Library& library, InputFeed* inputs,
                const std::function<void(const std::string&)>& before_nnapi) {
  const Session session = OpenSession(library.path, package.entry);
  before_nnapi(DescribeSubgraphs());
  CompileSubgraphs();
  inputs->Load(0);
  session.Run(inputs->tensors());
}

}  // namespace nnfarm
