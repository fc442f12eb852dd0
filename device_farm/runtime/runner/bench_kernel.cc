#include "runner/bench_kernel.h"

#include <algorithm>
#include <exception>
#include <string>

#include "api/cpu.h"
#include "api/library.h"
#include "base/ffi_call.h"
#include "base/json_writer.h"
#include "runner/bench_tensors.h"

namespace nnfarm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kRuled[] = "ruled";
// A candidate that takes so many times as long in one round is not measured in more.
constexpr double kHopeless = 1.3;

// One thread is measured on the fast cores: whichever kind it began on, it would change.
void UseThreads(int64_t threads) {
  if (threads == 1) BindToCpus(ChooseCpus("big"));
  SetThreads(threads);
}

class Schedules {
 public:
  explicit Schedules(const BenchKernel& kernel)
      : library_(LoadLibrary(kernel.library)), tensors_(kernel.tensors) {}

  BenchCall CallOf(const std::string& name) const {
    return {FunctionOf(library_, name), &tensors_.arguments()};
  }

  BenchCall Ruled() const { return CallOf(kRuled); }

  BenchCall Candidate(int64_t number) const {
    return CallOf("candidate_" + std::to_string(number));
  }

  std::vector<std::vector<uint8_t>> ResultsOf(const BenchCall& call) {
    tensors_.Fill();
    call();
    return tensors_.Copy();
  }

  bool Agrees(const BenchCall& call, const std::vector<std::vector<uint8_t>>& wanted) {
    // Filled again: what the other schedule has left must not pass for a result of this one.
    tensors_.Fill();
    call();
    return tensors_.Agree(wanted);
  }

 private:
  ffi::Module library_;  // functions do not keep it
  BenchTensors tensors_;
};

double RatioOf(const BenchCall& ruled, const BenchCall& candidate) {
  const PairTimes times =
      Interleave(ruled, candidate, kScreenedRounds, ThreadTimeUs, kHopeless);
  return *std::min_element(times.mine.begin(), times.mine.end()) /
         *std::min_element(times.theirs.begin(), times.theirs.end());
}

// Runs in the child: an error of the library is a line, too.
template <typename Work>
void TellErrors(const Say& say, const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    say(JsonObject().Add("error", error.what()).Text());
  }
}

void Screen(const BenchKernel& kernel, int64_t first, Clock::time_point deadline,
            const Say& say) {
  UseThreads(1);
  Schedules schedules(kernel);
  const BenchCall ruled = schedules.Ruled();
  const auto wanted = schedules.ResultsOf(ruled);
  const PairTimes alone = Interleave(ruled, ruled, kScreenedRounds, ThreadTimeUs, 0);
  say(JsonObject().Add("ruled_us", alone.theirs).Text());
  for (int64_t number = first; number < kernel.candidate_count && Clock::now() < deadline;
       ++number) {
    say(JsonObject().Add("begin", number).Text());
    const BenchCall candidate = schedules.Candidate(number);
    const bool agrees = schedules.Agrees(candidate, wanted);
    const double ratio = agrees ? RatioOf(ruled, candidate) : -1.0;
    say(JsonObject().Add("candidate", number).Add("ratio", ratio).Text());
  }
}

void Compare(const BenchKernel& kernel, int64_t candidate, int64_t threads, const Say& say) {
  UseThreads(threads);
  Schedules schedules(kernel);
  const BenchCall ruled = schedules.Ruled();
  schedules.ResultsOf(ruled);  // fills the tensors
  const PairTimes times = Interleave(ruled, schedules.Candidate(candidate), kFinalRounds,
                                     threads == 1 ? ThreadTimeUs : WallTimeUs, 0);
  say(JsonObject().Add("theirs", times.theirs).Add("mine", times.mine).Text());
}

}  // namespace

void ScreenAndSay(const BenchKernel& kernel, int64_t first, Clock::time_point deadline,
                  const Say& say) {
  TellErrors(say, [&] { Screen(kernel, first, deadline, say); });
}

void CompareAndSay(const BenchKernel& kernel, int64_t candidate, int64_t threads, const Say& say) {
  TellErrors(say, [&] { Compare(kernel, candidate, threads, say); });
}

}  // namespace nnfarm
