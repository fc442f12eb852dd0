// The table of operations. Each file of src/ops registers one family; nothing else lists them.
#ifndef DEVICE_FARM_SIMULATOR_SRC_OP_REGISTRY_H_
#define DEVICE_FARM_SIMULATOR_SRC_OP_REGISTRY_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "call.h"
#include "status.h"
#include "tensor.h"

namespace nnsim {

// One accepted list of operands and the level that introduced it. `pattern` has one letter an
// operand, outputs after '>':
//   f i u b h F I Q W H B C U Y S M  exactly this type (letters of TypeInfo)
//   X  the element type of the operation      s  a real scalar: h when X is H, else f
//   w  weights of X: X, or C when X is Q or S z  bias of X: X, or I when X is quantized
//   ?  any type; prepare checks it            *  after a letter: one or more of it
struct Form {
  int level;
  const char* pattern;
};

struct OpSpec {
  int32_t code;
  const char* name;
  // Element types with the levels that introduced them, such as "F1 Q1 H3 S4". The element type is
  // that of the first X of a form. Empty: no form has an X.
  const char* types;
  std::vector<Form> forms;
  // Checks ranks, shapes and values and sets the outputs' shapes.
  std::function<Status(Call&)> prepare;
  // Computes; every operand has its data. Only called after a successful prepare.
  std::function<void(Call&)> execute;
};

class Registrar {
 public:
  Registrar(std::initializer_list<OpSpec> specs);
};

// Null for an unknown code.
const OpSpec* FindOp(int32_t code);

// Checks operand types against the forms. On success `level` is the feature level needed.
Status MatchForm(const OpSpec& op, const std::vector<const Tensor*>& inputs,
                 const std::vector<const Tensor*>& outputs, int* level);

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_OP_REGISTRY_H_
