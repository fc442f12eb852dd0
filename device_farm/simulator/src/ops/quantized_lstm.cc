// QUANTIZED_LSTM: the cell of LSTM on integers of 8 bits, with a state of 16.
#include <algorithm>
#include <cmath>

#include "op_registry.h"
#include "ops/fixed_point.h"
#include "ops/rules.h"

namespace nnsim::ops_quantized_lstm {
namespace {

// Gates in the order of the operands.
constexpr size_t kGates = 4;
enum { kInputGate, kForgetGate, kCellGate, kOutputGate };

// Where the operands are.
constexpr size_t kWeights = 1, kRecurrent = 5, kPeephole = 9, kBias = 12, kProjection = 16;
constexpr size_t kProjectionBias = 17, kOutputState = 18, kCellState = 19, kNorm = 20;
constexpr size_t kCellClip = 24, kProjectionClip = 25, kIntermediate = 26;
constexpr size_t kHiddenZeroPoint = 30, kHiddenScale = 31;

// Gate sums have 3 integer bits and 12 fraction bits; activated gates 15.
constexpr int kGateBits = 3, kFractionBits = 15;
constexpr double kGateScale = 1.0 / 4096, kUnit = 1.0 / 32768;

Status CheckGate(const Call& call, size_t gate) {
  const uint32_t depth = call.Shape(0)[1], units = call.Shape(kCellState)[1];
  NNSIM_REQUIRE(call.Has(kWeights + gate) && call.Has(kRecurrent + gate) && call.Has(kBias + gate),
                "a gate is given in part only");
  NNSIM_REQUIRE(call.Shape(kWeights + gate) == (Dims{units, depth}) &&
                    call.Shape(kRecurrent + gate) == (Dims{units, call.Shape(kOutputState)[1]}) &&
                    call.Shape(kBias + gate) == Dims{units},
                "weights or biases do not fit input and states");
  NNSIM_REQUIRE(call.Has(kNorm + gate) == call.Has(kNorm + kForgetGate),
                "layer normalization is given in part only");
  return Ok();
}

Status CheckVectors(const Call& call, size_t first, size_t count, uint32_t length) {
  for (size_t i = first; i < first + count; ++i) {
    NNSIM_REQUIRE(!call.Has(i) || call.Shape(i) == Dims{length},
                  "input " + std::to_string(i) + " needs " + std::to_string(length) + " values");
  }
  return Ok();
}

// The cell state has a power of 2 as scale, 2^-9 to 2^-15: its integer bits are what is left.
Status ReadStateBits(const Call& call, int* bits) {
  const double power = std::log2(call.In(kCellState).scale);
  *bits = kFractionBits + static_cast<int>(std::lround(power));
  NNSIM_REQUIRE(std::fabs(power - std::round(power)) < 1e-3 && *bits >= 0 && *bits <= 6,
                "the scale of the cell state is no power of 2 from 2^-15 to 2^-9");
  return Ok();
}

Status Prepare(Call& call) {
  for (size_t i : {size_t{0}, kOutputState, kCellState}) {
    NNSIM_RETURN_IF_ERROR(CheckRank(call, i, 2, 2));
  }
  const uint32_t batch = call.Shape(0)[0], depth = call.Shape(0)[1];
  const uint32_t units = call.Shape(kCellState)[1], outputs = call.Shape(kOutputState)[1];
  const bool coupled = !call.Has(kWeights) && !call.Has(kRecurrent);
  for (size_t gate = coupled ? kForgetGate : kInputGate; gate < kGates; ++gate) {
    NNSIM_RETURN_IF_ERROR(CheckGate(call, gate));
  }
  NNSIM_RETURN_IF_ERROR(CheckVectors(call, kPeephole, 3, units));
  NNSIM_RETURN_IF_ERROR(CheckVectors(call, kNorm, kGates, units));
  NNSIM_RETURN_IF_ERROR(CheckVectors(call, kProjectionBias, 1, outputs));
  NNSIM_REQUIRE(call.Has(kProjection) ? call.Shape(kProjection) == (Dims{outputs, units})
                                      : outputs == units,
                "the projection does not fit the states");
  NNSIM_REQUIRE(call.Shape(kOutputState)[0] == batch && call.Shape(kCellState)[0] == batch,
                "the states are not of the input's batch");
  int bits = 0;
  NNSIM_RETURN_IF_ERROR(ReadStateBits(call, &bits));
  call.SetOut(0, {batch, outputs});
  call.SetOut(1, {batch, units});
  call.SetOut(2, {batch, outputs});
  call.SetMacs(static_cast<double>(batch) * kGates * units * (depth + outputs));
  return Ok();
}

// One row of symmetric weights times one row of values, less their zero point.
int32_t Dot(const Call& call, size_t weights, size_t row, const int8_t* values, int32_t zero) {
  const size_t count = call.Shape(weights)[1];
  const int8_t* w = call.Data<int8_t>(weights) + row * count;
  int32_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += w[i] * (values[i] - zero);
  return sum;
}

// Mean 0 and variance 1 over the units, with 10 fraction bits; then the gate's weights and bias.
void Normalize(Call& call, size_t gate, std::vector<int16_t>* sums) {
  constexpr int64_t kOne = 1024, kSquare = kOne * kOne;
  const auto count = static_cast<int64_t>(sums->size());
  int64_t total = 0, squares = 0;
  for (int64_t sum : *sums) total += sum, squares += sum * sum;
  const int64_t mean = total * kOne / count;
  const int64_t variance = (squares * (kSquare / count) - mean * mean) / kSquare;
  const float scale = call.In(kNorm + gate).scale;
  const int64_t least = std::max(int64_t{1}, static_cast<int64_t>(10000 * scale));
  const Multiplier divide =
      Multiplier::InverseRoot(static_cast<int32_t>(variance < 1 ? least : variance));
  const Multiplier scaled(scale / kGateScale);
  for (size_t u = 0; u < sums->size(); ++u) {
    const int64_t normal = divide(static_cast<int32_t>((*sums)[u] * kOne - mean));
    const int64_t value = normal * call.Data<int16_t>(kNorm + gate)[u] +
                          call.Data<int32_t>(kBias + gate)[u];
    const int64_t rounded = (value + (value > 0 ? kOne / 2 : -kOne / 2)) / kOne;
    (*sums)[u] = Saturate16(scaled(static_cast<int32_t>(rounded)));
  }
}

// What goes into the activation of one gate, for all units. Each part is rounded to the scale of
// the sum on its own. `cell` is what the peephole sees.
std::vector<int16_t> GateSums(Call& call, size_t gate, size_t b, const int16_t* cell) {
  const Tensor &input = call.In(0), &state = call.In(kOutputState);
  const bool norm = call.Has(kNorm + gate);
  const size_t peephole = kPeephole + (gate > kCellGate ? gate - 1 : gate);
  const bool peeps = gate != kCellGate && call.Has(peephole);
  const double scale = norm ? call.Real(kIntermediate + gate) : kGateScale;
  const Multiplier from_input(double{input.scale} * call.In(kWeights + gate).scale / scale);
  const Multiplier from_state(double{state.scale} * call.In(kRecurrent + gate).scale / scale);
  const Multiplier from_cell(
      peeps ? double{call.In(kCellState).scale} * call.In(peephole).scale / scale : 0);
  std::vector<int16_t> sums(call.Shape(kCellState)[1]);
  for (size_t u = 0; u < sums.size(); ++u) {
    const int32_t bias = norm ? 0 : call.Data<int32_t>(kBias + gate)[u];
    const int32_t x = Dot(call, kWeights + gate, u, call.Data<int8_t>(0) + b * input.dims[1],
                          input.zero_point);
    const int32_t h = Dot(call, kRecurrent + gate, u,
                          call.Data<int8_t>(kOutputState) + b * state.dims[1], state.zero_point);
    sums[u] = Saturate16(from_state(h) + int64_t{Saturate16(from_input(bias + x))});
    if (peeps) {
      const int32_t seen = call.Data<int16_t>(peephole)[u] * cell[u];
      sums[u] = Saturate16(from_cell(seen) + int64_t{sums[u]});
    }
  }
  if (norm) Normalize(call, gate, &sums);
  return sums;
}

// The next cell state of one batch entry.
void UpdateCell(Call& call, size_t b, int state_bits, int16_t* next) {
  const size_t units = call.Shape(kCellState)[1];
  const int16_t* cell = call.Data<int16_t>(kCellState) + b * units;
  const bool coupled = !call.Has(kWeights);
  const std::vector<int16_t> forget = GateSums(call, kForgetGate, b, cell);
  const std::vector<int16_t> update = GateSums(call, kCellGate, b, cell);
  const std::vector<int16_t> input = coupled ? forget : GateSums(call, kInputGate, b, cell);
  const float clip = call.Real(kCellClip);
  const int16_t high = clip > 0 ? Saturate16(static_cast<int64_t>(clip / call.In(kCellState).scale))
                                : int16_t{0};
  for (size_t u = 0; u < units; ++u) {
    const int32_t kept = FixedLogistic(forget[u], kGateBits);
    const int32_t taken = coupled ? 32767 - kept : FixedLogistic(input[u], kGateBits);
    const int32_t added = taken * FixedTanh(update[u], kGateBits);
    const int16_t sum = Saturate16(RoundingShift(kept * cell[u], kFractionBits) +
                                   RoundingShift(added, kFractionBits + state_bits));
    next[u] = clip > 0 ? std::clamp(sum, static_cast<int16_t>(-high), high) : sum;
  }
}

std::vector<int8_t> Hidden(Call& call, size_t b, int state_bits, const int16_t* cell) {
  const std::vector<int16_t> gate = GateSums(call, kOutputGate, b, cell);
  const Multiplier scaled(kUnit * kUnit / call.Real(kHiddenScale));
  std::vector<int8_t> hidden(gate.size());
  for (size_t u = 0; u < hidden.size(); ++u) {
    const int32_t product = FixedLogistic(gate[u], kGateBits) * FixedTanh(cell[u], state_bits);
    hidden[u] = Saturate8(int64_t{scaled(product)} + call.Int(kHiddenZeroPoint));
  }
  return hidden;
}

// The output of one batch entry from its hidden values; without projection it is those integers,
// whatever scale the output declares.
void Project(Call& call, const std::vector<int8_t>& hidden, int8_t* out) {
  if (!call.Has(kProjection)) {
    std::copy(hidden.begin(), hidden.end(), out);
    return;
  }
  const Tensor& state = call.In(kOutputState);
  const Multiplier scaled(double{call.In(kProjection).scale} * call.Real(kHiddenScale) /
                          state.scale);
  const float clip = call.Real(kProjectionClip);
  const int8_t high = clip > 0 ? Saturate8(static_cast<int64_t>(clip / state.scale)) : int8_t{0};
  for (size_t o = 0; o < state.dims[1]; ++o) {
    const int32_t bias =
        call.Has(kProjectionBias) ? call.Data<int32_t>(kProjectionBias)[o] : 0;
    const int32_t sum = bias + Dot(call, kProjection, o, hidden.data(), call.Int(kHiddenZeroPoint));
    out[o] = Saturate8(int64_t{scaled(sum)} + state.zero_point);
    if (clip > 0) out[o] = std::clamp(out[o], static_cast<int8_t>(-high), high);
  }
}

void Execute(Call& call) {
  const size_t batch = call.Shape(0)[0], outputs = call.Shape(kOutputState)[1];
  const size_t units = call.Shape(kCellState)[1];
  int state_bits = 0;
  (void)ReadStateBits(call, &state_bits);  // prepare has seen it succeed
  int8_t* out = call.OutData<int8_t>(2);
  for (size_t b = 0; b < batch; ++b) {
    int16_t* cell = call.OutData<int16_t>(1) + b * units;
    UpdateCell(call, b, state_bits, cell);
    Project(call, Hidden(call, b, state_bits, cell), out + b * outputs);
  }
  std::copy_n(out, batch * outputs, call.OutData<int8_t>(0));
}

const Registrar kOps{
    {95, "QUANTIZED_LSTM", "",
     {{4, "SYYYYYYYYWWWIIIIYISWWWWWffffffif>SWS"}}, Prepare, Execute},
};

}  // namespace
}  // namespace nnsim::ops_quantized_lstm
