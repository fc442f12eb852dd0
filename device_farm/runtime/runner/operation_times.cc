#include "runner/operation_times.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include "api/player_calls.h"
#include "api/run_error.h"
#include "base/ffi_call.h"
#include "base/json_reader.h"

namespace nnfarm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kMachinePrefix[] = "vm.";

struct TimedCall {
  std::string name;
  std::vector<double> samples_us;
};

// What the machine tells, as it does: calls in the order they begin, each with its samples.
class CallClock {
 public:
  void StartInference() { next_ = 0; }

  void Begin(const std::string& name) {
    if (next_ == calls_.size()) calls_.push_back({name, {}});
    // A model with branches may take another one.
    if (calls_[next_].name != name) ThrowFailed("--per-op: inferences differ in their calls");
    open_.push_back({next_++, Clock::now()});
  }

  void End() {
    const auto [index, start] = open_.back();
    const std::chrono::duration<double, std::micro> spent = Clock::now() - start;
    calls_[index].samples_us.push_back(spent.count());
    open_.pop_back();
  }

  const std::vector<TimedCall>& calls() const { return calls_; }

 private:
  std::vector<TimedCall> calls_;
  std::vector<std::pair<size_t, Clock::time_point>> open_;
  size_t next_ = 0;
};

// The machine calls it with the callee, its name, whether it is about to run, its result, and its
// arguments.
ffi::Function InstrumentFor(std::shared_ptr<CallClock> clock) {
  return MakeFunction([clock = std::move(clock)](ffi::PackedArgs args, ffi::Any*) {
    if (!args[2].cast<bool>()) return clock->End();
    const auto name = args[1].cast<ffi::String>();
    clock->Begin(std::string(name.data(), name.size()));
  });
}

double Median(std::vector<double> samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

const char* KindOf(const std::string& name, const std::set<std::string>& subgraphs) {
  if (subgraphs.count(name) != 0) return "nnapi";
  return name.rfind(kMachinePrefix, 0) == 0 ? "runtime" : "cpu";
}

// NNAPI's own times of each subgraph, by symbol and name of the time.
using DurationSamples = std::map<std::string, std::map<std::string, std::vector<double>>>;

void AddDurations(DurationSamples* samples) {
  const std::string text = DescribeDurations();
  for (const JsonValue& item : JsonValue::Parse(text, "durations").Items()) {
    for (const char* name : {"hardware_us", "driver_us"}) {
      if (!item.Has(name)) continue;
      (*samples)[item.Get("symbol").String()][name].push_back(item.Get(name).Number());
    }
  }
}

}  // namespace

std::vector<JsonObject> MeasureOperations(const Session& session,
                                          const std::vector<ffi::Tensor>& inputs,
                                          const std::set<std::string>& subgraphs,
                                          int64_t inferences) {
  const auto clock = std::make_shared<CallClock>();
  DurationSamples durations;
  session.SetInstrument(InstrumentFor(clock));
  MeasureDurations(true);
  for (int64_t i = 0; i < inferences; ++i) {
    clock->StartInference();
    session.Run(inputs);
    AddDurations(&durations);
  }
  MeasureDurations(false);
  std::vector<JsonObject> operations;
  for (const TimedCall& call : clock->calls()) {
    JsonObject& operation = operations.emplace_back();
    operation.Add("name", call.name)
        .Add("kind", KindOf(call.name, subgraphs))
        .Add("us", Median(call.samples_us));
    for (const auto& [name, samples_us] : durations[call.name]) {
      operation.Add(name.c_str(), Median(samples_us));
    }
  }
  return operations;
}

}  // namespace nnfarm
