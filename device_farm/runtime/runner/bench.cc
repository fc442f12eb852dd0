#include "runner/bench.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "api/cpu.h"
#include "base/json_reader.h"
#include "base/log.h"
#include "runner/bench_file.h"
#include "runner/bench_kernel.h"
#include "runner/bench_timing.h"
#include "runner/child_process.h"
#include "runner/events.h"

namespace nnfarm {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Of a kernel's time; the rest is the last measurement's.
constexpr double kScreenedShare = 0.8;
// What a child may be late: a call cannot be told to stop.
constexpr milliseconds kHang{5000};
constexpr milliseconds kFinalLimit{20000};
// Times as long on all cores: one thread tells best what is faster, but not how loops are cut.
constexpr double kWorseInParallel = 1.05;

struct Screened {
  std::vector<double> ruled_us;
  int64_t tried = 0;
  int64_t crashed = 0;
  int64_t differing = 0;
  int64_t best = -1;
  double best_ratio = 0.0;
  int64_t unfinished = -1;  // the candidate that the last child was at when it ended
  std::string detail;  // why nothing was measured
};

std::vector<double> Numbers(const JsonValue& json) {
  std::vector<double> numbers;
  for (const JsonValue& item : json.Items()) numbers.push_back(item.Number());
  return numbers;
}

void Take(const JsonValue& line, Screened* screened) {
  if (line.Has("error")) screened->detail = line.Get("error").String();
  if (line.Has("ruled_us") && screened->ruled_us.empty()) {
    screened->ruled_us = Numbers(line.Get("ruled_us"));
  }
  if (line.Has("begin")) screened->unfinished = line.Get("begin").Int(0, INT64_MAX);
  if (!line.Has("candidate")) return;
  screened->unfinished = -1;
  const double ratio = line.Get("ratio").Number();
  if (ratio < 0) {
    ++screened->differing;
    return;
  }
  ++screened->tried;
  if (screened->best < 0 || ratio < screened->best_ratio) {
    screened->best = line.Get("candidate").Int(0, INT64_MAX);
    screened->best_ratio = ratio;
  }
}

Screened Screen(const BenchKernel& kernel, Clock::time_point deadline) {
  Screened screened;
  // A child that crashes, hangs or fails over a candidate ends; another one goes on behind it.
  for (int64_t first = 0; first < kernel.candidate_count && Clock::now() < deadline;) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    screened.detail.clear();
    const ChildReport report = RunInChild(
        [&](const Say& say) { ScreenAndSay(kernel, first, deadline, say); }, left + kHang);
    for (const std::string& line : report.lines) {
      Take(JsonValue::Parse(line, "the child's line"), &screened);
    }
    if (report.end != ChildEnd::kDone) screened.detail = report.detail;
    if (screened.unfinished < 0) break;
    ++screened.crashed;
    LogLine("candidate " + std::to_string(screened.unfinished) + ": " + screened.detail);
    first = screened.unfinished + 1;
    screened.unfinished = -1;
  }
  return screened;
}

std::optional<PairTimes> Compare(const BenchKernel& kernel, int64_t candidate, int64_t threads) {
  const ChildReport report = RunInChild(
      [&](const Say& say) { CompareAndSay(kernel, candidate, threads, say); }, kFinalLimit);
  if (report.end != ChildEnd::kDone || report.lines.size() != 1) return std::nullopt;
  const JsonValue line = JsonValue::Parse(report.lines[0], "the child's line");
  if (!line.Has("mine")) return std::nullopt;
  return PairTimes{Numbers(line.Get("theirs")), Numbers(line.Get("mine"))};
}

bool IsNoWorseInParallel(const BenchKernel& kernel, int64_t candidate) {
  const auto cores = static_cast<int64_t>(ChooseCpus("all").size());
  if (cores == 1) return true;
  const std::optional<PairTimes> times = Compare(kernel, candidate, cores);
  if (!times.has_value()) return false;
  return *std::min_element(times->mine.begin(), times->mine.end()) <=
         kWorseInParallel * *std::min_element(times->theirs.begin(), times->theirs.end());
}

JsonObject TimingOf(const std::vector<double>& times) {
  const Quartiles quartiles = QuartilesOf(times);
  return JsonObject()
      .Add("median_us", quartiles.median)
      .Add("spread_us", (quartiles.high - quartiles.low) / 2);
}

// Adds `before`, `after`, `best` and `rounds`.
void AddComparison(const BenchKernel& kernel, const Screened& screened, JsonObject* event) {
  std::optional<PairTimes> times;
  if (screened.best >= 0 && screened.best_ratio < 1 - kLeastGain) {
    times = Compare(kernel, screened.best, 1);
  }
  if (!times.has_value()) {
    event->Add("before", TimingOf(screened.ruled_us)).Add("rounds", int64_t{kScreenedRounds});
    return;
  }
  event->Add("before", TimingOf(times->theirs)).Add("after", TimingOf(times->mine));
  event->Add("rounds", int64_t{kFinalRounds});
  if (IsFaster(*times) && IsNoWorseInParallel(kernel, screened.best)) {
    event->Add("best", screened.best);
  }
}

void Measure(const BenchKernel& kernel, milliseconds part) {
  const Clock::time_point began = Clock::now();
  const auto screening = std::chrono::duration_cast<milliseconds>(part * kScreenedShare);
  const Screened screened = Screen(kernel, began + screening);
  JsonObject event = NewEvent("kernel");
  event.Add("signature", kernel.signature);
  if (screened.ruled_us.empty()) {
    Emit(event.Add("error", screened.detail));
    return;
  }
  AddComparison(kernel, screened, &event);
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began);
  Emit(event.Add("tried", screened.tried)
           .Add("crashed", screened.crashed)
           .Add("differing", screened.differing)
           .Add("duration_us", static_cast<int64_t>(took.count())));
}

}  // namespace

void RunBench(const std::string& path) {
  EmitStart();
  const BenchFile bench = BenchFile::Load(path);
  const Clock::time_point deadline = Clock::now() + milliseconds(bench.time_limit_ms);
  for (size_t i = 0; i < bench.kernels.size(); ++i) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) break;
    // What a kernel leaves of its part goes to those behind it.
    Measure(bench.kernels[i], left / static_cast<int64_t>(bench.kernels.size() - i));
  }
  Emit(NewEvent("end").Add("engine", "cpu"));
}

}  // namespace nnfarm
