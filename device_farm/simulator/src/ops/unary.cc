// Operations that map each element by itself.
#include <cmath>

#include "op_registry.h"
#include "ops/rules.h"
#include "parallel.h"

namespace nnsim::ops_unary {
namespace {

template <typename F>
std::function<void(Call&)> Map(F f) {
  return [f](Call& call) {
    const float* in = call.Values(0);
    float* out = call.Results();
    ParallelFor(call.In(0).count(), 4096, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) out[i] = f(in[i]);
    });
  };
}

// Integers keep all their bits; reals go through Map.
template <typename Real, typename Int>
std::function<void(Call&)> MapNumbers(Real real, Int integer) {
  return [real, integer](Call& call) {
    if (call.In(0).type != ANEURALNETWORKS_TENSOR_INT32) return Map(real)(call);
    for (size_t i = 0; i < call.In(0).count(); ++i) {
      call.OutData<int32_t>()[i] = integer(call.Data<int32_t>(0)[i]);
    }
  };
}

int32_t Negate(int32_t x) { return static_cast<int32_t>(0u - static_cast<uint32_t>(x)); }
int32_t Absolute(int32_t x) { return x < 0 ? Negate(x) : x; }

Status PrepareRelu(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckSameQuantization(call));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 1, 4));
  return SameShapeAsInput(call);
}

Status PrepareLogistic(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckFixedQuantization(call, 1.0f / 256, 0, -128));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 1, 4));
  return SameShapeAsInput(call);
}

Status PrepareTanh(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckFixedQuantization(call, 1.0f / 128, 128, 0));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 1, 4));
  return SameShapeAsInput(call);
}

void ExecuteElu(Call& call) {
  const float alpha = call.Real(1);
  Map([alpha](float x) { return x >= 0 ? x : alpha * (std::exp(x) - 1); })(call);
}

const Registrar kOps{
    {8, "FLOOR", "F1 H3", {{1, "X>X"}}, SameShapeAsInput,
     Map([](float x) { return std::floor(x); })},
    {14, "LOGISTIC", kCommonTypes, {{1, "X>X"}}, PrepareLogistic,
     Map([](float x) { return 1.0f / (1.0f + std::exp(-x)); })},
    {19, "RELU", kCommonTypes, {{1, "X>X"}}, PrepareRelu,
     Map([](float x) { return x < 0 ? 0 : x; })},
    {20, "RELU1", kCommonTypes, {{1, "X>X"}}, PrepareRelu,
     Map([](float x) { return x < -1 ? -1 : (x > 1 ? 1 : x); })},
    {21, "RELU6", kCommonTypes, {{1, "X>X"}}, PrepareRelu,
     Map([](float x) { return x < 0 ? 0 : (x > 6 ? 6 : x); })},
    {28, "TANH", "F1 H3 Q3 S4", {{1, "X>X"}}, PrepareTanh,
     Map([](float x) { return std::tanh(x); })},
    {38, "ABS", "F3 H3 I4", {{3, "X>X"}}, SameShapeAsInput,
     MapNumbers([](float x) { return std::fabs(x); }, Absolute)},
    {49, "EXP", "F3 H3", {{3, "X>X"}}, SameShapeAsInput,
     Map([](float x) { return std::exp(x); })},
    {60, "LOG", "F3 H3", {{3, "X>X"}}, SameShapeAsInput,
     Map([](float x) { return std::log(x); })},
    {67, "NEG", "F3 H3 I3", {{3, "X>X"}}, SameShapeAsInput,
     MapNumbers([](float x) { return -x; }, Negate)},
    {83, "RSQRT", "F3 H3 Q7 S7", {{3, "X>X"}}, SameShapeAsInput,
     Map([](float x) { return 1.0f / std::sqrt(x); })},
    {85, "SIN", "F3 H3", {{3, "X>X"}}, SameShapeAsInput,
     Map([](float x) { return std::sin(x); })},
    {88, "SQRT", "F3 H3", {{3, "X>X"}}, SameShapeAsInput,
     Map([](float x) { return std::sqrt(x); })},
    {98, "ELU", "F4 H4", {{4, "Xs>X"}}, SameShapeAsInput, ExecuteElu},
    {99, "HARD_SWISH", "F4 H4 Q4 S4", {{4, "X>X"}}, SameShapeAsInput,
     Map([](float x) { return x * std::fmin(std::fmax(x + 3, 0.0f), 6.0f) / 6; })},
};

}  // namespace
}  // namespace nnsim::ops_unary
