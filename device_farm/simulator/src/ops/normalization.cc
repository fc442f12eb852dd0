// L2_NORMALIZATION, LOCAL_RESPONSE_NORMALIZATION and INSTANCE_NORMALIZATION.
#include <algorithm>
#include <cmath>

#include "op_registry.h"
#include "ops/conv.h"

namespace nnsim::ops_normalization {
namespace {

// The axis is the last operand where there is one more than `without`, else the last axis.
Status ReadAxis(Call& call, size_t without, uint32_t* axis) {
  const int32_t given = call.input_count() > without ? call.Int(without) : -1;
  return ResolveAxis(given, call.Rank(0), axis);
}

Status CheckAxis(Call& call, size_t without) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 1, 4));
  uint32_t axis = 0;
  NNSIM_RETURN_IF_ERROR(ReadAxis(call, without, &axis));
  if (call.Rank(0) != 4) call.Need(3);
  return SameShapeAsInput(call);
}

Status PrepareL2(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckFixedQuantization(call, 1.0f / 128, 128, 0));
  return CheckAxis(call, 1);
}

void ExecuteL2(Call& call) {
  uint32_t axis = 0;
  (void)ReadAxis(call, 1, &axis);  // prepare has seen it succeed
  const AxisView view(call.Shape(0), axis);
  const float* in = call.Values(0);
  float* out = call.Results();
  for (size_t line = 0; line < view.outer * view.inner; ++line) {
    const size_t start = line / view.inner * view.length * view.inner + line % view.inner;
    float sum = 0;
    for (size_t i = 0; i < view.length; ++i) {
      const float value = in[start + i * view.inner];
      sum += value * value;
    }
    const float norm = std::max(std::sqrt(sum), 1e-6f);
    for (size_t i = 0; i < view.length; ++i) {
      out[start + i * view.inner] = in[start + i * view.inner] / norm;
    }
  }
}

Status PrepareLocalResponse(Call& call) {
  NNSIM_REQUIRE(call.Int(1) >= 0, "the radius must not be negative");
  return CheckAxis(call, 5);
}

void ExecuteLocalResponse(Call& call) {
  uint32_t axis = 0;
  (void)ReadAxis(call, 5, &axis);  // prepare has seen it succeed
  const AxisView view(call.Shape(0), axis);
  const int64_t radius = call.Int(1), length = static_cast<int64_t>(view.length);
  const float bias = call.Real(2), alpha = call.Real(3), beta = call.Real(4);
  const float* in = call.Values(0);
  float* out = call.Results();
  for (size_t line = 0; line < view.outer * view.inner; ++line) {
    const size_t start = line / view.inner * view.length * view.inner + line % view.inner;
    for (int64_t i = 0; i < length; ++i) {
      float sum = 0;
      for (int64_t n = std::max<int64_t>(0, i - radius); n <= std::min(length - 1, i + radius);
           ++n) {
        const float value = in[start + static_cast<size_t>(n) * view.inner];
        sum += value * value;
      }
      const size_t at = start + static_cast<size_t>(i) * view.inner;
      out[at] = in[at] * std::pow(bias + alpha * sum, -beta);
    }
  }
}

Status PrepareInstance(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 4, 4));
  return SameShapeAsInput(call);
}

void ExecuteInstance(Call& call) {
  ConvArgs args;
  args.nchw = call.Bool(4);
  args.in = args.out = ReadImage(call.Shape(0), args.nchw);
  const float gamma = call.Real(1), beta = call.Real(2), epsilon = call.Real(3);
  const size_t plane = static_cast<size_t>(args.in.height) * args.in.width;
  const size_t depth = args.in.depth;
  WithNhwc(call, args, [&](const float* input, float* output) {
    for (size_t line = 0; line < args.in.batch * depth; ++line) {
      const size_t start = line / depth * plane * depth + line % depth;
      double sum = 0, squares = 0;
      for (size_t p = 0; p < plane; ++p) sum += input[start + p * depth];
      const double mean = sum / static_cast<double>(plane);
      for (size_t p = 0; p < plane; ++p) {
        const double delta = input[start + p * depth] - mean;
        squares += delta * delta;
      }
      const double deviation = std::sqrt(squares / static_cast<double>(plane) + epsilon);
      for (size_t p = 0; p < plane; ++p) {
        const double centred = (input[start + p * depth] - mean) / deviation;
        output[start + p * depth] = static_cast<float>(gamma * centred + beta);
      }
    }
  });
}

const Registrar kOps{
    {11, "L2_NORMALIZATION", "F1 H3 Q3 S4", {{1, "X>X"}, {3, "Xi>X"}}, PrepareL2, ExecuteL2},
    {13, "LOCAL_RESPONSE_NORMALIZATION", "F1 H3", {{1, "Xisss>X"}, {3, "Xisssi>X"}},
     PrepareLocalResponse, ExecuteLocalResponse},
    {57, "INSTANCE_NORMALIZATION", "F3 H3", {{3, "Xsssb>X"}}, PrepareInstance, ExecuteInstance},
};

}  // namespace
}  // namespace nnsim::ops_normalization
