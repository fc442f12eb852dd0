// Binary arithmetic with broadcasting.
#include <cmath>

#include "op_registry.h"
#include "ops/broadcast.h"
#include "ops/rules.h"

namespace nnsim::ops_arithmetic {
namespace {

Status PrepareBinary(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 1, 4));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 1, 1, 4));
  Dims dims;
  NNSIM_RETURN_IF_ERROR(BroadcastShape(call.Shape(0), call.Shape(1), &dims));
  call.SetOut(0, dims);
  return Ok();
}

Status PrepareFused(Call& call) {
  const int32_t activation = call.Int(2);
  NNSIM_RETURN_IF_ERROR(CheckActivation(activation));
  NNSIM_REQUIRE(call.In(0).type != ANEURALNETWORKS_TENSOR_INT32 ||
                    activation == ANEURALNETWORKS_FUSED_NONE,
                "integers take no fused activation");
  return PrepareBinary(call);
}

Status PrepareMultiply(Call& call) {
  const Tensor& out = call.Out();
  NNSIM_REQUIRE(!IsQuantized(out.type) || out.scale > call.In(0).scale * call.In(1).scale,
                "the output's scale must be above the product of the inputs' scales");
  return PrepareFused(call);
}

template <typename F>
void ApplyReal(Call& call, F f) {
  BroadcastApply(call.Values(0), call.Shape(0), call.Values(1), call.Shape(1), call.Results(),
                 call.Out().dims, f);
}

// Integers wrap around, as in two's complement.
template <typename F>
void ApplyInt(Call& call, F f) {
  BroadcastApply(call.Data<int32_t>(0), call.Shape(0), call.Data<int32_t>(1), call.Shape(1),
                 call.OutData<int32_t>(), call.Out().dims, f);
}

uint32_t Bits(int32_t value) { return static_cast<uint32_t>(value); }

int32_t FloorDivide(int32_t a, int32_t b) {
  if (b == 0) return 0;
  const int64_t quotient = static_cast<int64_t>(a) / b;
  const bool inexact = static_cast<int64_t>(a) % b != 0;
  return static_cast<int32_t>(inexact && ((a < 0) != (b < 0)) ? quotient - 1 : quotient);
}

template <typename Real, typename Int>
std::function<void(Call&)> Fused(Real real, Int integer) {
  return [=](Call& call) {
    if (call.In(0).type == ANEURALNETWORKS_TENSOR_INT32) return ApplyInt(call, integer);
    const Range range = FusedRange(call.Int(2));
    ApplyReal(call, [=](float a, float b) { return range.Clamp(real(a, b)); });
  };
}

template <typename Real, typename Int>
std::function<void(Call&)> Plain(Real real, Int integer) {
  return [=](Call& call) {
    if (call.In(0).type == ANEURALNETWORKS_TENSOR_INT32) return ApplyInt(call, integer);
    ApplyReal(call, real);
  };
}

void ExecutePow(Call& call) {
  ApplyReal(call, [](float a, float b) { return std::pow(a, b); });
}

void ExecutePrelu(Call& call) {
  ApplyReal(call, [](float a, float slope) { return a >= 0 ? a : a * slope; });
}

const Registrar kOps{
    {0, "ADD", "F1 Q1 H3 S4 I4", {{1, "XXi>X"}}, PrepareFused,
     Fused([](float a, float b) { return a + b; },
           [](int32_t a, int32_t b) { return static_cast<int32_t>(Bits(a) + Bits(b)); })},
    {18, "MUL", "F1 Q1 H3 S4 I4", {{1, "XXi>X"}}, PrepareMultiply,
     Fused([](float a, float b) { return a * b; },
           [](int32_t a, int32_t b) { return static_cast<int32_t>(Bits(a) * Bits(b)); })},
    {30, "DIV", "F2 H3 I4", {{2, "XXi>X"}}, PrepareFused,
     Fused([](float a, float b) { return a / b; }, FloorDivide)},
    {36, "SUB", "F2 Q3 H3 S4 I4", {{2, "XXi>X"}}, PrepareFused,
     Fused([](float a, float b) { return a - b; },
           [](int32_t a, int32_t b) { return static_cast<int32_t>(Bits(a) - Bits(b)); })},
    {65, "MAXIMUM", "F3 H3 I3 Q3 S4", {{3, "XX>X"}}, PrepareBinary,
     Plain([](float a, float b) { return a > b ? a : b; },
           [](int32_t a, int32_t b) { return a > b ? a : b; })},
    {66, "MINIMUM", "F3 H3 I3 Q3 S4", {{3, "XX>X"}}, PrepareBinary,
     Plain([](float a, float b) { return a < b ? a : b; },
           [](int32_t a, int32_t b) { return a < b ? a : b; })},
    {70, "POW", "F3 H3", {{3, "XX>X"}}, PrepareBinary, ExecutePow},
    {71, "PRELU", "F3 H3 Q3 S4", {{3, "XX>X"}}, PrepareBinary, ExecutePrelu},
};

}  // namespace
}  // namespace nnsim::ops_arithmetic
