// Checks and small computations several families share.
#ifndef DEVICE_FARM_SIMULATOR_SRC_OPS_RULES_H_
#define DEVICE_FARM_SIMULATOR_SRC_OPS_RULES_H_

#include <limits>

#include "call.h"

namespace nnsim {

// Element types of most operations of level 1.
constexpr const char kCommonTypes[] = "F1 Q1 H3 S4";

// The interval a fused activation clamps to.
struct Range {
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();

  float Clamp(float value) const { return value < low ? low : (value > high ? high : value); }
};

inline Range FusedRange(int32_t activation) {
  Range range;
  if (activation == ANEURALNETWORKS_FUSED_RELU) range.low = 0;
  if (activation == ANEURALNETWORKS_FUSED_RELU1) range = {-1, 1};
  if (activation == ANEURALNETWORKS_FUSED_RELU6) range = {0, 6};
  return range;
}

inline Status CheckActivation(int32_t activation) {
  NNSIM_REQUIRE(activation >= ANEURALNETWORKS_FUSED_NONE &&
                    activation <= ANEURALNETWORKS_FUSED_RELU6,
                "no such fused activation");
  return Ok();
}

inline Status CheckRank(const Call& call, size_t input, uint32_t low, uint32_t high) {
  NNSIM_REQUIRE(call.Rank(input) >= low && call.Rank(input) <= high,
                "input " + std::to_string(input) + " has rank " +
                    std::to_string(call.Rank(input)) + ", " + std::to_string(low) + " to " +
                    std::to_string(high) + " is allowed");
  return Ok();
}

// Operations that only move elements keep the quantization.
inline Status CheckSameQuantization(const Call& call, size_t input = 0, size_t output = 0) {
  const Tensor& in = call.In(input);
  const Tensor& out = call.Out(output);
  NNSIM_REQUIRE(!IsQuantized(in.type) ||
                    (in.scale == out.scale && in.zero_point == out.zero_point),
                "input and output need the same scale and zero point");
  return Ok();
}

// Some results have a fixed range: `scale` and the zero points for unsigned and signed 8 bits.
inline Status CheckFixedQuantization(const Call& call, float scale, int32_t zero_unsigned,
                                     int32_t zero_signed) {
  const Tensor& out = call.Out();
  if (!IsQuantized(out.type)) return Ok();
  const bool is_signed = out.type == ANEURALNETWORKS_TENSOR_QUANT8_ASYMM_SIGNED;
  NNSIM_REQUIRE(out.scale == scale && out.zero_point == (is_signed ? zero_signed : zero_unsigned),
                "the output's scale and zero point are fixed for this operation");
  return Ok();
}

// Resolves a possibly negative axis of input 0.
inline Status ResolveAxis(int32_t axis, uint32_t rank, uint32_t* resolved) {
  const int32_t signed_rank = static_cast<int32_t>(rank);
  NNSIM_REQUIRE(axis >= -signed_rank && axis < signed_rank,
                "axis " + std::to_string(axis) + " is out of range");
  *resolved = static_cast<uint32_t>(axis < 0 ? axis + signed_rank : axis);
  return Ok();
}

// A shape seen from one axis: [outer, length, inner].
struct AxisView {
  size_t outer = 1, length = 1, inner = 1;

  AxisView(const Dims& dims, size_t axis) {
    for (size_t d = 0; d < dims.size(); ++d) {
      (d < axis ? outer : d == axis ? length : inner) *= dims[d];
    }
  }
};

inline Status SameShapeAsInput(Call& call) {
  call.SetOut(0, call.Shape(0));
  return Ok();
}

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_OPS_RULES_H_
