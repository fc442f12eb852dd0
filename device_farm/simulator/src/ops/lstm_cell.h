// One layer of long short-term memory, and where its parameters are among the operands.
#ifndef DEVICE_FARM_SIMULATOR_SRC_OPS_LSTM_CELL_H_
#define DEVICE_FARM_SIMULATOR_SRC_OPS_LSTM_CELL_H_

#include <array>
#include <vector>

#include "call.h"
#include "ops/recurrent.h"

namespace nnsim {

// Gates in the order of the operands.
enum Gate { kInputGate, kForgetGate, kCellGate, kOutputGate, kGates };

constexpr size_t kAbsent = SIZE_MAX;

// Operand indexes of one layer. Each group lists the gates in order; peepholes skip the cell gate.
struct LstmOperands {
  size_t input = 0;         // the sequence or vector the layer reads
  size_t input_weights;     // 4
  size_t recurrent;         // 4
  size_t peephole;          // 3, optional
  size_t bias;              // 4; the first one optional
  size_t projection;        // weights and bias, optional
  size_t output_state, cell_state;
  size_t activation;        // then cell clip and projection clip
  size_t norm = kAbsent;    // 4, optional
  size_t aux = kAbsent;     // auxiliary input
  size_t aux_weights = kAbsent;  // 4
};

// Checks every shape against the others. `depth` and `batch` are those of the input.
Status CheckLstm(Call& call, const LstmOperands& operands, uint32_t depth, uint32_t batch);

class LstmCell {
 public:
  LstmCell(Call& call, const LstmOperands& operands);

  // One step of one batch entry; `output` (outputs values) and `cell` (units values) are the state,
  // updated in place. `aux` may be null.
  void Step(const float* x, const float* aux, float* output, float* cell) const;

  size_t depth, units, outputs, aux_depth = 0;

 private:
  std::vector<float> Sums(Gate gate, const float* x, const float* aux, const float* output,
                          const float* cell) const;

  using Weights = std::array<const float*, kGates>;
  Weights input_{}, recurrent_{}, peephole_{}, bias_{}, norm_{}, aux_{};
  const float* projection_ = nullptr;
  const float* projection_bias_ = nullptr;
  int32_t activation_;
  float cell_clip_, projection_clip_;
};

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_OPS_LSTM_CELL_H_
