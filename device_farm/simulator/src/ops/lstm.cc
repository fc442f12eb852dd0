// LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM and BIDIRECTIONAL_SEQUENCE_LSTM.
#include <algorithm>

#include "op_registry.h"
#include "ops/lstm_cell.h"

namespace nnsim::ops_lstm {
namespace {

// Operands of a single layer; layer normalization begins at `norm` where there is any.
LstmOperands SingleLayer(const Call& call, size_t norm) {
  LstmOperands at{};
  at.input_weights = 1;
  at.recurrent = 5;
  at.peephole = 9;
  at.bias = 12;
  at.projection = 16;
  at.output_state = 18;
  at.cell_state = 19;
  at.activation = 20;
  at.norm = call.input_count() > norm ? norm : kAbsent;
  return at;
}

std::vector<float> Copy(Call& call, size_t input) {
  const float* values = call.Values(input);
  return std::vector<float>(values, values + call.In(input).count());
}

Status PrepareLstm(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 2, 2));
  const uint32_t batch = call.Shape(0)[0];
  NNSIM_RETURN_IF_ERROR(CheckLstm(call, SingleLayer(call, 23), call.Shape(0)[1], batch));
  const uint32_t units = call.Shape(19)[1];
  call.SetOut(0, {batch, units * (call.Has(1) ? 4 : 3)});
  call.SetOut(1, call.Shape(18));
  call.SetOut(2, call.Shape(19));
  call.SetOut(3, call.Shape(18));
  return Ok();
}

void ExecuteLstm(Call& call) {
  const LstmCell cell(call, SingleLayer(call, 23));
  std::vector<float> output = Copy(call, 18), state = Copy(call, 19);
  const float* x = call.Values(0);
  for (size_t b = 0; b < call.Shape(0)[0]; ++b) {
    cell.Step(x + b * cell.depth, nullptr, output.data() + b * cell.outputs,
              state.data() + b * cell.units);
  }
  // The first output is scratch space of the old interface; nobody may read it.
  std::fill_n(call.Results(0), call.Out(0).count(), 0.0f);
  std::copy(output.begin(), output.end(), call.Results(1));
  std::copy(state.begin(), state.end(), call.Results(2));
  std::copy(output.begin(), output.end(), call.Results(3));
}

// A layer over a whole sequence; rows of `out` are `pitch` apart and begin at `offset`.
struct Layer {
  const float* x;
  const float* aux;
  float* out;
  size_t pitch, offset;

  void Run(const LstmCell& cell, const Sequence& sequence, std::vector<float>* output,
           std::vector<float>* state) const {
    for (size_t b = 0; b < sequence.batch; ++b) {
      float* own = output->data() + b * cell.outputs;
      for (size_t step = 0; step < sequence.steps; ++step) {
        const size_t row = sequence.Row(step, b);
        cell.Step(x + row * cell.depth, aux == nullptr ? nullptr : aux + row * cell.aux_depth, own,
                  state->data() + b * cell.units);
        std::copy_n(own, cell.outputs, out + row * pitch + offset);
      }
    }
  }
};

Status PrepareUnidirectional(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 3, 3));
  const Sequence sequence(call.Shape(0), call.Bool(23), false);
  NNSIM_RETURN_IF_ERROR(CheckLstm(call, SingleLayer(call, 24), call.Shape(0)[2],
                                  static_cast<uint32_t>(sequence.batch)));
  Dims dims = call.Shape(0);
  dims[2] = call.Shape(18)[1];
  call.SetOut(0, dims);
  if (call.output_count() == 3) {
    call.SetOut(1, call.Shape(18));
    call.SetOut(2, call.Shape(19));
  }
  return Ok();
}

void ExecuteUnidirectional(Call& call) {
  const LstmCell cell(call, SingleLayer(call, 24));
  const Sequence sequence(call.Shape(0), call.Bool(23), false);
  std::vector<float> output = Copy(call, 18), state = Copy(call, 19);
  const Layer layer{call.Values(0), nullptr, call.Results(0), cell.outputs, 0};
  layer.Run(cell, sequence, &output, &state);
  if (call.output_count() == 3) {
    std::copy(output.begin(), output.end(), call.Results(1));
    std::copy(state.begin(), state.end(), call.Results(2));
  }
}

constexpr size_t kAuxInput = 39, kMerge = 51, kTimeMajor = 52;

// Without weights of its own the auxiliary input is what the backward layer reads.
bool IsCrossLinked(const Call& call) { return call.Has(kAuxInput) && !call.Has(41); }

LstmOperands Direction(const Call& call, bool backwards) {
  const size_t first = backwards ? 18 : 1;
  LstmOperands at{};
  at.input = backwards && IsCrossLinked(call) ? kAuxInput : 0;
  at.input_weights = first;
  at.recurrent = first + 4;
  at.peephole = first + 8;
  at.bias = first + 11;
  at.projection = first + 15;
  at.output_state = backwards ? 37 : 35;
  at.cell_state = at.output_state + 1;
  at.activation = 48;
  at.norm = backwards ? 57 : 53;
  if (call.Has(kAuxInput) && call.Has(41)) {
    at.aux = kAuxInput;
    at.aux_weights = backwards ? 44 : 40;
  }
  return at;
}

Status PrepareBidirectional(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 3, 3));
  const Sequence sequence(call.Shape(0), call.Bool(kTimeMajor), false);
  const uint32_t batch = static_cast<uint32_t>(sequence.batch);
  for (bool backwards : {false, true}) {
    const LstmOperands at = Direction(call, backwards);
    NNSIM_RETURN_IF_ERROR(CheckRank(call, at.input, 3, 3));
    NNSIM_RETURN_IF_ERROR(CheckLstm(call, at, call.Shape(at.input)[2], batch));
    NNSIM_REQUIRE(at.aux == kAbsent || (call.Rank(at.aux) == 3 && call.Has(at.aux_weights + 1) &&
                                        call.Rank(at.aux_weights + 1) == 2 &&
                                        call.Shape(at.aux)[2] == call.Shape(at.aux_weights + 1)[1]),
                  "the auxiliary weights do not fit");
  }
  const bool merge = call.Bool(kMerge);
  const uint32_t forward = call.Shape(35)[1], backward = call.Shape(37)[1];
  const Dims& in = call.Shape(0);
  call.SetOut(0, {in[0], in[1], merge ? forward + backward : forward});
  const size_t plain = merge ? 1 : 2;
  NNSIM_REQUIRE(call.deferred() || call.output_count() == plain ||
                    call.output_count() == plain + 4,
                "the number of outputs does not fit the merge flag");
  if (!merge) call.SetOut(1, {in[0], in[1], backward});
  for (size_t i = 0; i < 4 && call.output_count() == plain + 4; ++i) {
    call.Need(4);
    call.SetOut(plain + i, call.Shape(35 + i));
  }
  return Ok();
}

void ExecuteBidirectional(Call& call) {
  const bool merge = call.Bool(kMerge);
  const size_t plain = merge ? 1 : 2;
  float* merged = call.Results(0);
  for (bool backwards : {false, true}) {
    const LstmOperands at = Direction(call, backwards);
    const LstmCell cell(call, at);
    const Sequence sequence(call.Shape(0), call.Bool(kTimeMajor), backwards);
    std::vector<float> output = Copy(call, at.output_state), state = Copy(call, at.cell_state);
    const bool apart = backwards && !merge;
    const Layer layer{call.Values(at.input), at.aux == kAbsent ? nullptr : call.Values(at.aux),
                      apart ? call.Results(1) : merged,
                      apart ? cell.outputs : call.Out(0).dims[2],
                      backwards && merge ? call.Shape(35)[1] : 0};
    layer.Run(cell, sequence, &output, &state);
    if (call.output_count() > plain) {
      const size_t first = plain + (backwards ? 2 : 0);
      std::copy(output.begin(), output.end(), call.Results(first));
      std::copy(state.begin(), state.end(), call.Results(first + 1));
    }
  }
}

constexpr char kBidirectionalForm[] =
    "XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXissbbXXXXXXXX>X*";

const Registrar kOps{
    {16, "LSTM", "F1 H3",
     {{1, "XXXXXXXXXXXXXXXXXXXXiss>XXXX"}, {3, "XXXXXXXXXXXXXXXXXXXXissXXXX>XXXX"}}, PrepareLstm,
     ExecuteLstm},
    {92, "UNIDIRECTIONAL_SEQUENCE_LSTM", "F3 H3",
     {{3, "XXXXXXXXXXXXXXXXXXXXissbXXXX>X"}, {4, "XXXXXXXXXXXXXXXXXXXXissbXXXX>XXX"}},
     PrepareUnidirectional, ExecuteUnidirectional},
    {42, "BIDIRECTIONAL_SEQUENCE_LSTM", "F3 H3", {{3, kBidirectionalForm}}, PrepareBidirectional,
     ExecuteBidirectional},
};

}  // namespace
}  // namespace nnsim::ops_lstm
