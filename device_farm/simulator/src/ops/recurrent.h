// What recurrent layers share: activations of cells and the order of a sequence.
#ifndef DEVICE_FARM_SIMULATOR_SRC_OPS_RECURRENT_H_
#define DEVICE_FARM_SIMULATOR_SRC_OPS_RECURRENT_H_

#include <cmath>

#include "ops/rules.h"

namespace nnsim {

// Activations of recurrent cells: the fused ones, then tanh and the logistic function.
constexpr int32_t kTanh = 4, kLogistic = 6;

inline Status CheckCellActivation(int32_t activation) {
  if (activation == kTanh || activation == kLogistic) return Ok();
  return CheckActivation(activation);
}

inline float Logistic(float x) { return 1.0f / (1.0f + std::exp(-x)); }

inline float Activate(float x, int32_t activation) {
  if (activation == kTanh) return std::tanh(x);
  if (activation == kLogistic) return Logistic(x);
  return FusedRange(activation).Clamp(x);
}

// How a sequence of shape [time, batch, ...] or [batch, time, ...] is walked.
struct Sequence {
  size_t steps, batch;
  bool time_major, backwards;

  Sequence(const Dims& dims, bool time_major_layout, bool reversed)
      : steps(dims[time_major_layout ? 0 : 1]),
        batch(dims[time_major_layout ? 1 : 0]),
        time_major(time_major_layout),
        backwards(reversed) {}

  size_t Row(size_t step, size_t b) const {
    const size_t t = backwards ? steps - 1 - step : step;
    return time_major ? t * batch + b : b * steps + t;
  }
};

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_OPS_RECURRENT_H_
