#include "device_state.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

namespace nnsim {
namespace {

std::mutex state_mutex;  // guards all below
std::map<std::string, int64_t> runs_of;
double heat_us = 0;
Clock::time_point last_busy;

int64_t CountRun(const std::string& device) {
  std::lock_guard<std::mutex> lock(state_mutex);
  return ++runs_of[device];
}

Status Hang(Clock::time_point deadline) {
  for (;;) {
    std::this_thread::sleep_until(std::min(deadline, Clock::now() + std::chrono::hours(1)));
    if (Clock::now() >= deadline) {
      return {ANEURALNETWORKS_MISSED_DEADLINE_TRANSIENT, "the device does not answer"};
    }
  }
}

}  // namespace

Status StartRun(const DeviceSpec& device, Clock::time_point deadline, double* slow_us) {
  const Quirks& quirks = device.quirks;
  const int64_t run = CountRun(device.name);
  if (run == 1) *slow_us += quirks.first_run_us;
  if (run == quirks.crash_at_run) {
    std::fprintf(stderr, "nnapi simulator: %s crashes as its profile says\n", device.name.c_str());
    std::abort();
  }
  if (run == quirks.hang_at_run) return Hang(deadline);
  if (quirks.out_of_memory_at_run != 0 && run >= quirks.out_of_memory_at_run) {
    return {ANEURALNETWORKS_OUT_OF_MEMORY, device.name + " has no memory left"};
  }
  return Ok();
}

double HeatUp(double busy_us) {
  const Thermal& thermal = CurrentProfile().thermal;
  if (thermal.slowdown <= 1) return 1;
  std::lock_guard<std::mutex> lock(state_mutex);
  const Clock::time_point now = Clock::now();
  const double idle_us = std::chrono::duration<double, std::micro>(now - last_busy).count();
  if (last_busy != Clock::time_point()) heat_us = std::max(0.0, heat_us - idle_us);
  const double factor = heat_us >= thermal.throttle_after_us ? thermal.slowdown : 1;
  heat_us += busy_us;
  // The time of this run is no idle time.
  last_busy = now + std::chrono::duration_cast<Clock::duration>(
                        std::chrono::duration<double, std::micro>(busy_us * factor));
  return factor;
}

}  // namespace nnsim
