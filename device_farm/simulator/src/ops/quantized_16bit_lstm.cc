// QUANTIZED_16BIT_LSTM: a plain cell on unsigned bytes with a state of 16 bits.
#include "op_registry.h"
#include "ops/fixed_point.h"
#include "ops/rules.h"

namespace nnsim::ops_quantized_16bit_lstm {
namespace {

// Gates in the order of the operands.
constexpr size_t kGates = 4;
enum { kInputGate, kForgetGate, kCellGate, kOutputGate };

// Where the operands are.
constexpr size_t kWeights = 1, kRecurrent = 5, kBias = 9, kCellState = 13, kOutputState = 14;

// Integer bits of what goes into a gate, and of the state.
constexpr int kGateBits = 3, kStateBits = 4;
constexpr float kGateScale = 1.0f / 4096, kStateScale = 1.0f / 2048, kByteScale = 1.0f / 128;
constexpr int32_t kByteZero = 128;

Status CheckQuantization(const Call& call) {
  for (const Tensor* bytes : {&call.In(0), &call.In(kOutputState), &call.Out(1)}) {
    NNSIM_REQUIRE(bytes->scale == kByteScale && bytes->zero_point == kByteZero,
                  "input and outputs have scale 1/128 and zero point 128");
  }
  for (const Tensor* state : {&call.In(kCellState), &call.Out(0)}) {
    NNSIM_REQUIRE(state->scale == kStateScale, "the cell state has scale 1/2048");
  }
  return Ok();
}

Status Prepare(Call& call) {
  for (size_t i : {size_t{0}, kCellState, kOutputState}) {
    NNSIM_RETURN_IF_ERROR(CheckRank(call, i, 2, 2));
  }
  NNSIM_RETURN_IF_ERROR(CheckQuantization(call));
  const uint32_t batch = call.Shape(0)[0], depth = call.Shape(0)[1];
  const uint32_t units = call.Shape(kOutputState)[1];
  for (size_t gate = 0; gate < kGates; ++gate) {
    NNSIM_REQUIRE(call.Shape(kWeights + gate) == (Dims{units, depth}) &&
                      call.Shape(kRecurrent + gate) == (Dims{units, units}) &&
                      call.Shape(kBias + gate) == Dims{units},
                  "weights or biases do not fit input and state");
  }
  for (size_t i : {kCellState, kOutputState}) {
    NNSIM_REQUIRE(call.Shape(i) == (Dims{batch, units}), "a state does not fit");
    call.SetOut(i - kCellState, {batch, units});
  }
  call.SetMacs(static_cast<double>(batch) * kGates * units * (depth + units));
  return Ok();
}

// One row of weights times one row of values, less their zero points.
int32_t Dot(const Call& call, size_t weights, size_t row, size_t values, size_t b) {
  const size_t count = call.Shape(values)[1];
  const uint8_t* w = call.Data<uint8_t>(weights) + row * count;
  const uint8_t* x = call.Data<uint8_t>(values) + b * count;
  int32_t sum = 0;
  for (size_t i = 0; i < count; ++i) {
    sum += (w[i] - call.In(weights).zero_point) * (x[i] - call.In(values).zero_point);
  }
  return sum;
}

// What goes into the activation of a gate.
int16_t GateSum(const Call& call, size_t gate, size_t b, size_t unit) {
  const int32_t sum = call.Data<int32_t>(kBias + gate)[unit] +
                      Dot(call, kWeights + gate, unit, 0, b) +
                      Dot(call, kRecurrent + gate, unit, kOutputState, b);
  const double scale = double{call.In(0).scale} * call.In(kWeights + gate).scale / kGateScale;
  return Saturate16(Multiplier(scale)(sum));
}

void Execute(Call& call) {
  constexpr int kBits = 15;
  const size_t batch = call.Shape(0)[0], units = call.Shape(kOutputState)[1];
  for (size_t b = 0; b < batch; ++b) {
    for (size_t unit = 0; unit < units; ++unit) {
      const auto gate = [&](size_t index) {
        return FixedLogistic(GateSum(call, index, b, unit), kGateBits);
      };
      const size_t at = b * units + unit;
      const int32_t update = FixedTanh(GateSum(call, kCellGate, b, unit), kGateBits);
      const int32_t taken = RoundingShift(gate(kInputGate) * update, kBits);
      const int32_t kept =
          RoundingShift(gate(kForgetGate) * call.Data<int16_t>(kCellState)[at], kBits);
      const int16_t state = Saturate16(kept + RoundingShift(taken, kStateBits));
      const int32_t out =
          RoundingShift(gate(kOutputGate) * FixedTanh(state, kStateBits), kBits);
      call.OutData<int16_t>(0)[at] = state;
      call.OutData<uint8_t>(1)[at] =
          static_cast<uint8_t>(kByteZero + Saturate8(RoundingShift(out, 8)));
    }
  }
}

const Registrar kOps{
    {73, "QUANTIZED_16BIT_LSTM", "", {{3, "QQQQQQQQQIIIIWQ>WQ"}}, Prepare, Execute},
};

}  // namespace
}  // namespace nnsim::ops_quantized_16bit_lstm
