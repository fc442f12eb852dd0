// Times of two functions, interleaved, and what they mean. As workers/tuning/timing.py.
#ifndef NNFARM_RUNNER_BENCH_TIMING_H_
#define NNFARM_RUNNER_BENCH_TIMING_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/function.h>

#include <vector>

namespace nnfarm {

// Microseconds since some moment.
using BenchClock = double (*)();

// Of this thread: a machine that does other work as well interrupts a kernel for longer than the
// kernel takes.
double ThreadTimeUs();

double WallTimeUs();

// Microseconds a call, of each round.
struct PairTimes {
  std::vector<double> theirs;
  std::vector<double> mine;
};

// A function with its arguments, which must outlive it.
struct BenchCall {
  tvm::ffi::Function function;
  const std::vector<tvm::ffi::AnyView>* arguments;

  // Throws ffi::Error.
  void operator()() const;
};

// The two take turns, so that a machine that slows down slows both. Ends before `rounds` where the
// first one shows that `mine` takes more than `hopeless` times as long; 0: never.
PairTimes Interleave(const BenchCall& theirs, const BenchCall& mine, int rounds, BenchClock clock,
                     double hopeless);

// Lower quartile, median and upper quartile, between the values around them.
struct Quartiles {
  double low;
  double median;
  double high;
};

// Of one value or more.
Quartiles QuartilesOf(std::vector<double> values);

// Whether the second is faster beyond doubt: in three rounds of four, by enough.
bool IsFaster(const PairTimes& times);

// What must be won, of the time: less is not told from noise.
constexpr double kLeastGain = 0.03;

}  // namespace nnfarm

#endif  // NNFARM_RUNNER_BENCH_TIMING_H_
