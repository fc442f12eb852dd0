#include "ops/lstm_cell.h"

#include <algorithm>

namespace nnsim {
namespace {

// Peephole weights have no cell gate between forget and output.
size_t PeepholeIndex(size_t first, int gate) {
  return first + static_cast<size_t>(gate == kOutputGate ? 2 : gate);
}

Status CheckShape(Call& call, size_t operand, const Dims& dims) {
  NNSIM_REQUIRE(call.Shape(operand) == dims,
                "operand " + std::to_string(operand) + " is " + ToString(call.Shape(operand)) +
                    ", " + ToString(dims) + " expected");
  return Ok();
}

Status CheckOptional(Call& call, size_t operand, const Dims& dims) {
  return call.Has(operand) ? CheckShape(call, operand, dims) : Ok();
}

float Clip(float x, float limit) { return limit > 0 ? std::clamp(x, -limit, limit) : x; }

// (x - mean) / deviation * weights, in place.
void Normalize(std::vector<float>* values, const float* weights) {
  float mean = 0, variance = 0;
  for (float value : *values) mean += value;
  mean /= static_cast<float>(values->size());
  for (float value : *values) variance += (value - mean) * (value - mean);
  variance /= static_cast<float>(values->size());
  const float scale = 1.0f / std::sqrt(variance + 1e-8f);
  for (size_t i = 0; i < values->size(); ++i) {
    (*values)[i] = ((*values)[i] - mean) * scale * weights[i];
  }
}

void AddProduct(const float* matrix, const float* vector, size_t columns,
                std::vector<float>* sums) {
  for (size_t r = 0; r < sums->size(); ++r) {
    float sum = 0;
    for (size_t c = 0; c < columns; ++c) sum += matrix[r * columns + c] * vector[c];
    (*sums)[r] += sum;
  }
}

}  // namespace

Status CheckLstm(Call& call, const LstmOperands& at, uint32_t depth, uint32_t batch) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, at.input_weights + kForgetGate, 2, 2));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, at.output_state, 2, 2));
  const uint32_t units = call.Shape(at.input_weights + kForgetGate)[0];
  const uint32_t outputs = call.Shape(at.output_state)[1];
  // Without an input gate (CIFG) its weights, recurrent weights and bias are all absent.
  const bool coupled = !call.Has(at.input_weights);
  NNSIM_REQUIRE(coupled == !call.Has(at.recurrent) && coupled == !call.Has(at.bias),
                "the input gate is half there");
  for (size_t g = coupled ? 1 : 0; g < kGates; ++g) {
    NNSIM_RETURN_IF_ERROR(CheckShape(call, at.input_weights + g, {units, depth}));
    NNSIM_RETURN_IF_ERROR(CheckShape(call, at.recurrent + g, {units, outputs}));
    NNSIM_RETURN_IF_ERROR(CheckShape(call, at.bias + g, {units}));
    if (at.norm != kAbsent) NNSIM_RETURN_IF_ERROR(CheckOptional(call, at.norm + g, {units}));
  }
  for (size_t p = 0; p < 3; ++p) {
    NNSIM_RETURN_IF_ERROR(CheckOptional(call, at.peephole + p, {units}));
  }
  NNSIM_REQUIRE(call.Has(at.peephole + 1) == call.Has(at.peephole + 2), "half a peephole");
  NNSIM_REQUIRE(call.Has(at.projection) || outputs == units,
                "without a projection the output has one value a unit");
  NNSIM_RETURN_IF_ERROR(CheckOptional(call, at.projection, {outputs, units}));
  NNSIM_RETURN_IF_ERROR(CheckOptional(call, at.projection + 1, {outputs}));
  NNSIM_RETURN_IF_ERROR(CheckShape(call, at.output_state, {batch, outputs}));
  NNSIM_RETURN_IF_ERROR(CheckShape(call, at.cell_state, {batch, units}));
  return CheckCellActivation(call.Int(at.activation));
}

LstmCell::LstmCell(Call& call, const LstmOperands& at)
    : depth(call.Shape(at.input_weights + kForgetGate)[1]),
      units(call.Shape(at.input_weights + kForgetGate)[0]),
      outputs(call.Shape(at.output_state)[1]),
      activation_(call.Int(at.activation)),
      cell_clip_(call.Real(at.activation + 1)),
      projection_clip_(call.Real(at.activation + 2)) {
  const auto read = [&call](size_t i) { return call.Has(i) ? call.Values(i) : nullptr; };
  for (int g = 0; g < kGates; ++g) {
    const size_t gate = static_cast<size_t>(g);
    input_[gate] = read(at.input_weights + gate);
    recurrent_[gate] = read(at.recurrent + gate);
    bias_[gate] = read(at.bias + gate);
    if (g != kCellGate) peephole_[gate] = read(PeepholeIndex(at.peephole, g));
    if (at.norm != kAbsent) norm_[gate] = read(at.norm + gate);
    if (at.aux_weights != kAbsent) aux_[gate] = read(at.aux_weights + gate);
  }
  if (aux_[kForgetGate] != nullptr) aux_depth = call.Shape(at.aux_weights + kForgetGate)[1];
  projection_ = read(at.projection);
  projection_bias_ = read(at.projection + 1);
}

std::vector<float> LstmCell::Sums(Gate gate, const float* x, const float* aux, const float* output,
                                  const float* cell) const {
  std::vector<float> sums(units, 0.0f);
  AddProduct(input_[gate], x, depth, &sums);
  if (aux != nullptr && aux_[gate] != nullptr) AddProduct(aux_[gate], aux, aux_depth, &sums);
  AddProduct(recurrent_[gate], output, outputs, &sums);
  if (peephole_[gate] != nullptr) {
    for (size_t u = 0; u < units; ++u) sums[u] += peephole_[gate][u] * cell[u];
  }
  if (norm_[gate] != nullptr) Normalize(&sums, norm_[gate]);
  for (size_t u = 0; u < units; ++u) sums[u] += bias_[gate][u];
  return sums;
}

void LstmCell::Step(const float* x, const float* aux, float* output, float* cell) const {
  const bool coupled = input_[kInputGate] == nullptr;
  const std::vector<float> forget = Sums(kForgetGate, x, aux, output, cell);
  const std::vector<float> candidate = Sums(kCellGate, x, aux, output, cell);
  std::vector<float> input;
  if (!coupled) input = Sums(kInputGate, x, aux, output, cell);
  for (size_t u = 0; u < units; ++u) {
    const float keep = Logistic(forget[u]);
    const float take = coupled ? 1 - keep : Logistic(input[u]);
    cell[u] = Clip(keep * cell[u] + take * Activate(candidate[u], activation_), cell_clip_);
  }
  std::vector<float> gated = Sums(kOutputGate, x, aux, output, cell);
  for (size_t u = 0; u < units; ++u) gated[u] = Logistic(gated[u]) * Activate(cell[u], activation_);
  if (projection_ == nullptr) {
    std::copy(gated.begin(), gated.end(), output);
    return;
  }
  std::vector<float> projected(outputs, 0.0f);
  AddProduct(projection_, gated.data(), units, &projected);
  for (size_t o = 0; o < outputs; ++o) {
    const float bias = projection_bias_ == nullptr ? 0 : projection_bias_[o];
    output[o] = Clip(projected[o] + bias, projection_clip_);
  }
}

}  // namespace nnsim
