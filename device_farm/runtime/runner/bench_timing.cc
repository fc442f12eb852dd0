#include "runner/bench_timing.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/ffi_call.h"

namespace nnfarm {
namespace {

// One function's turn in a round, so that the clock's own time does not count.
constexpr double kTurnUs = 2000.0;
constexpr double kLeastCallUs = 0.1;

double ReadClock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

double TimeOf(const BenchCall& call, int count, BenchClock clock) {
  const double started_us = clock();
  for (int i = 0; i < count; ++i) call();
  return (clock() - started_us) / count;
}

}  // namespace

void BenchCall::operator()() const {
  CallPacked(function, arguments->data(), arguments->size());
}

double ThreadTimeUs() { return ReadClock(CLOCK_THREAD_CPUTIME_ID); }

double WallTimeUs() { return ReadClock(CLOCK_MONOTONIC); }

PairTimes Interleave(const BenchCall& theirs, const BenchCall& mine, int rounds, BenchClock clock,
                     double hopeless) {
  // Threads start, pages are touched.
  const double one_us = (TimeOf(theirs, 1, clock) + TimeOf(mine, 1, clock)) / 2;
  const int count = std::max(1, static_cast<int>(kTurnUs / std::max(one_us, kLeastCallUs)));
  PairTimes times;
  for (int round = 0; round < rounds; ++round) {
    times.theirs.push_back(TimeOf(theirs, count, clock));
    times.mine.push_back(TimeOf(mine, count, clock));
    if (hopeless > 0 && times.mine.back() > hopeless * times.theirs.back()) break;
  }
  return times;
}

Quartiles QuartilesOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const double place = std::clamp(share * (static_cast<double>(values.size()) + 1) - 1, 0.0,
                                    static_cast<double>(values.size()) - 1);
    const auto below = static_cast<size_t>(place);
    const size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (place - std::floor(place)) * (values[above] - values[below]);
  };
  return {at(0.25), at(0.5), at(0.75)};
}

bool IsFaster(const PairTimes& times) {
  std::vector<double> ratios;
  for (size_t i = 0; i < times.mine.size(); ++i) ratios.push_back(times.mine[i] / times.theirs[i]);
  return QuartilesOf(ratios).high < 1 - kLeastGain;
}

}  // namespace nnfarm
