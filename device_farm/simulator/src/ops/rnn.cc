// RNN, UNIDIRECTIONAL_SEQUENCE_RNN and BIDIRECTIONAL_SEQUENCE_RNN.
#include <algorithm>

#include "op_registry.h"
#include "ops/recurrent.h"

namespace nnsim::ops_rnn {
namespace {

// One layer's parameters. The second input is optional.
struct Cell {
  const float *weights, *recurrent, *bias;
  const float* aux_weights = nullptr;
  size_t depth, units, aux_depth = 0;
  int32_t activation;

  // state: units values, updated. out gets a copy.
  void Step(const float* x, const float* aux, const float* state, float* out) const {
    for (size_t u = 0; u < units; ++u) {
      float sum = bias[u];
      for (size_t i = 0; i < depth; ++i) sum += weights[u * depth + i] * x[i];
      for (size_t i = 0; i < units; ++i) sum += recurrent[u * units + i] * state[i];
      for (size_t i = 0; i < aux_depth; ++i) sum += aux_weights[u * aux_depth + i] * aux[i];
      out[u] = Activate(sum, activation);
    }
  }
};

// Weights, recurrent weights and bias are the operands from `first`.
Status CheckCell(Call& call, size_t first, uint32_t depth, uint32_t batch) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, first, 2, 2));
  const uint32_t units = call.Shape(first)[0];
  NNSIM_REQUIRE(call.Shape(first)[1] == depth, "the weights do not fit the input");
  NNSIM_REQUIRE(call.Shape(first + 1) == (Dims{units, units}),
                "the recurrent weights are no square");
  NNSIM_REQUIRE(call.Shape(first + 2) == Dims{units}, "the bias needs one value a unit");
  NNSIM_REQUIRE(call.Shape(first + 3) == (Dims{batch, units}), "the state does not fit");
  return Ok();
}

Cell ReadCell(Call& call, size_t first, int32_t activation) {
  Cell cell{};
  cell.weights = call.Values(first);
  cell.recurrent = call.Values(first + 1);
  cell.bias = call.Values(first + 2);
  cell.depth = call.Shape(first)[1];
  cell.units = call.Shape(first)[0];
  cell.activation = activation;
  return cell;
}

Status PrepareRnn(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 2, 2));
  NNSIM_RETURN_IF_ERROR(CheckCell(call, 1, call.Shape(0)[1], call.Shape(0)[0]));
  NNSIM_RETURN_IF_ERROR(CheckCellActivation(call.Int(5)));
  call.SetOut(0, call.Shape(4));
  call.SetOut(1, call.Shape(4));
  return Ok();
}

void ExecuteRnn(Call& call) {
  const Cell cell = ReadCell(call, 1, call.Int(5));
  const float *x = call.Values(0), *state = call.Values(4);
  float *next = call.Results(0), *out = call.Results(1);
  for (size_t b = 0; b < call.Shape(0)[0]; ++b) {
    cell.Step(x + b * cell.depth, nullptr, state + b * cell.units, out + b * cell.units);
  }
  std::copy_n(out, call.In(4).count(), next);
}

// Runs a layer over a sequence. Rows of `out` are `pitch` apart and begin at `offset`.
void RunLayer(const Cell& cell, const Sequence& sequence, const float* x, const float* aux,
              std::vector<float>* state, float* out, size_t pitch, size_t offset) {
  std::vector<float> next(cell.units);
  for (size_t b = 0; b < sequence.batch; ++b) {
    float* own = state->data() + b * cell.units;
    for (size_t step = 0; step < sequence.steps; ++step) {
      const size_t row = sequence.Row(step, b);
      cell.Step(x + row * cell.depth, aux == nullptr ? nullptr : aux + row * cell.aux_depth, own,
                next.data());
      std::copy(next.begin(), next.end(), own);
      std::copy(next.begin(), next.end(), out + row * pitch + offset);
    }
  }
}

Status PrepareUnidirectional(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 3, 3));
  const bool time_major = call.Int(6) != 0;
  const Sequence sequence(call.Shape(0), time_major, false);
  NNSIM_RETURN_IF_ERROR(
      CheckCell(call, 1, call.Shape(0)[2], static_cast<uint32_t>(sequence.batch)));
  NNSIM_RETURN_IF_ERROR(CheckCellActivation(call.Int(5)));
  Dims dims = call.Shape(0);
  dims[2] = call.Shape(1)[0];
  call.SetOut(0, dims);
  if (call.output_count() == 2) call.SetOut(1, call.Shape(4));
  return Ok();
}

void ExecuteUnidirectional(Call& call) {
  const Cell cell = ReadCell(call, 1, call.Int(5));
  const Sequence sequence(call.Shape(0), call.Int(6) != 0, false);
  std::vector<float> state(call.Values(4), call.Values(4) + call.In(4).count());
  RunLayer(cell, sequence, call.Values(0), nullptr, &state, call.Results(0), cell.units, 0);
  if (call.output_count() == 2) std::copy(state.begin(), state.end(), call.Results(1));
}

// Operands: input, forward cell at 1, backward cell at 5, auxiliary input at 9 with weights at 10
// and 11, activation, time major, merge outputs. Outputs: forward, backward unless merged, states.
Status PrepareBidirectional(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 3, 3));
  const bool merge = call.Bool(14);
  const Sequence sequence(call.Shape(0), call.Bool(13), false);
  const uint32_t batch = static_cast<uint32_t>(sequence.batch);
  // Without weights of its own the auxiliary input is what the backward layer reads.
  const bool cross = call.Has(9) && !call.Has(10);
  NNSIM_RETURN_IF_ERROR(CheckCell(call, 1, call.Shape(0)[2], batch));
  NNSIM_RETURN_IF_ERROR(CheckCell(call, 5, call.Shape(cross ? 9 : 0)[2], batch));
  NNSIM_REQUIRE(call.Has(10) == call.Has(11), "auxiliary weights for one direction only");
  NNSIM_RETURN_IF_ERROR(CheckCellActivation(call.Int(12)));
  const uint32_t forward = call.Shape(1)[0], backward = call.Shape(5)[0];
  const Dims& in = call.Shape(0);
  call.SetOut(0, {in[0], in[1], merge ? forward + backward : forward});
  if (!merge) call.SetOut(1, {in[0], in[1], backward});
  const size_t plain = merge ? 1 : 2;
  NNSIM_REQUIRE(call.deferred() || call.output_count() == plain ||
                    call.output_count() == plain + 2,
                "the number of outputs does not fit the merge flag");
  if (call.output_count() == plain + 2) {
    call.Need(4);
    call.SetOut(plain, call.Shape(4));
    call.SetOut(plain + 1, call.Shape(8));
  }
  return Ok();
}

void ExecuteBidirectional(Call& call) {
  const bool merge = call.Bool(14), time_major = call.Bool(13);
  const bool has_aux = call.Has(9) && call.Has(10), cross = call.Has(9) && !call.Has(10);
  const size_t plain = merge ? 1 : 2;
  const size_t pitch = call.Out().dims[2];
  float* forward_out = call.Results(0);
  for (int backwards = 0; backwards < 2; ++backwards) {
    const size_t first = backwards ? 5 : 1;
    Cell cell = ReadCell(call, first, call.Int(12));
    if (has_aux) {
      cell.aux_weights = call.Values(backwards ? 11 : 10);
      cell.aux_depth = call.Shape(9)[2];
    }
    const Sequence sequence(call.Shape(0), time_major, backwards != 0);
    std::vector<float> state(call.Values(first + 3),
                             call.Values(first + 3) + call.In(first + 3).count());
    const bool apart = backwards && !merge;
    float* out = apart ? call.Results(1) : forward_out;
    RunLayer(cell, sequence, call.Values(backwards && cross ? 9 : 0),
             has_aux ? call.Values(9) : nullptr, &state, out, apart ? cell.units : pitch,
             backwards && merge ? call.Shape(1)[0] : 0);
    if (call.output_count() > plain) {
      std::copy(state.begin(), state.end(), call.Results(plain + static_cast<size_t>(backwards)));
    }
  }
}

const Registrar kOps{
    {24, "RNN", "F1 H3", {{1, "XXXXXi>XX"}}, PrepareRnn, ExecuteRnn},
    {93, "UNIDIRECTIONAL_SEQUENCE_RNN", "F3 H3", {{3, "XXXXXii>X"}, {4, "XXXXXii>XX"}},
     PrepareUnidirectional, ExecuteUnidirectional},
    {43, "BIDIRECTIONAL_SEQUENCE_RNN", "F3 H3", {{3, "XXXXXXXXXXXXibb>X*"}}, PrepareBidirectional,
     ExecuteBidirectional},
};

}  // namespace
}  // namespace nnsim::ops_rnn
