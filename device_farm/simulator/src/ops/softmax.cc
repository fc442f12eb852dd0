// SOFTMAX and LOG_SOFTMAX.
#include <cmath>

#include "op_registry.h"
#include "ops/rules.h"
#include "parallel.h"

namespace nnsim::ops_softmax {
namespace {

Status ReadAxis(Call& call, uint32_t* axis) {
  const int32_t given = call.input_count() > 2 ? call.Int(2) : -1;
  return ResolveAxis(given, call.Rank(0), axis);
}

Status Prepare(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 1, 4));
  NNSIM_REQUIRE(call.Real(1) > 0, "beta must be above 0");
  uint32_t axis = 0;
  NNSIM_RETURN_IF_ERROR(ReadAxis(call, &axis));
  if (call.Rank(0) == 1 || call.Rank(0) == 3) call.Need(3);
  return SameShapeAsInput(call);
}

Status PrepareSoftmax(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckFixedQuantization(call, 1.0f / 256, 0, -128));
  return Prepare(call);
}

void ComputeLine(const float* in, float* out, const AxisView& view, float beta, bool log) {
  float maximum = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < view.length; ++i) maximum = std::fmax(maximum, in[i * view.inner]);
  float sum = 0;
  for (size_t i = 0; i < view.length; ++i) {
    const float shifted = (in[i * view.inner] - maximum) * beta;
    out[i * view.inner] = log ? shifted : std::exp(shifted);
    sum += std::exp(shifted);
  }
  const float log_sum = std::log(sum);
  for (size_t i = 0; i < view.length; ++i) {
    float& value = out[i * view.inner];
    value = log ? value - log_sum : value / sum;
  }
}

std::function<void(Call&)> Execute(bool log) {
  return [log](Call& call) {
    uint32_t axis = 0;
    (void)ReadAxis(call, &axis);  // prepare has seen it succeed
    const AxisView view(call.Shape(0), axis);
    const float* in = call.Values(0);
    float* out = call.Results();
    const float beta = call.Real(1);
    const size_t lines = view.outer * view.inner, grain = 1024 / (view.length + 1) + 1;
    ParallelFor(lines, grain, [&](size_t begin, size_t end) {
      for (size_t line = begin; line < end; ++line) {
        const size_t start = line / view.inner * view.length * view.inner + line % view.inner;
        ComputeLine(in + start, out + start, view, beta, log);
      }
    });
  };
}

const Registrar kOps{
    {25, "SOFTMAX", kCommonTypes, {{1, "Xs>X"}, {3, "Xsi>X"}}, PrepareSoftmax, Execute(false)},
    {64, "LOG_SOFTMAX", "F3 H3", {{3, "Xsi>X"}}, Prepare, Execute(true)},
};

}  // namespace
}  // namespace nnsim::ops_softmax
