#include "op_registry.h"

#include <algorithm>
#include <map>

namespace nnsim {
namespace {

std::map<int32_t, OpSpec>& Table() {
  static std::map<int32_t, OpSpec> table;
  return table;
}

char Letter(const Tensor& tensor) { return Info(tensor.type).letter; }

// Matches one operand; `element` is the element type letter, 0 before the first X.
bool MatchLetter(char wanted, char actual, char* element) {
  const bool quantized = *element == 'Q' || *element == 'S';
  switch (wanted) {
    case '?':
      return true;
    case 'X':
      if (*element == 0) *element = actual;
      return actual == *element;
    case 's':
      return actual == (*element == 'H' ? 'h' : 'f');
    case 'w':
      return actual == *element || (actual == 'C' && quantized);
    case 'z':
      return actual == (quantized ? 'I' : *element);
    default:
      return actual == wanted;
  }
}

bool MatchSide(const std::string& pattern, const std::vector<const Tensor*>& operands,
               char* element) {
  const size_t star = pattern.find('*');
  const size_t letters = pattern.size() - (star == std::string::npos ? 0 : 1);
  if (star == std::string::npos ? operands.size() != letters : operands.size() < letters) {
    return false;
  }
  const size_t repeats = operands.size() - letters;
  size_t next = 0;
  for (size_t p = 0; p < pattern.size(); ++p) {
    if (pattern[p] == '*') continue;
    const size_t times = p + 1 == star ? 1 + repeats : 1;
    for (size_t t = 0; t < times; ++t, ++next) {
      if (!MatchLetter(pattern[p], Letter(*operands[next]), element)) return false;
    }
  }
  return true;
}

// Level of an element type in "F1 Q1 H3"; 0 when it is not there.
int ElementLevel(const std::string& types, char element) {
  for (size_t i = 0; i + 1 < types.size(); i += 3) {
    if (types[i] == element) return types[i + 1] - '0';
  }
  return 0;
}

std::string Letters(const std::vector<const Tensor*>& operands) {
  std::string text;
  for (const Tensor* operand : operands) text += std::string(" ") + Info(operand->type).name;
  return text;
}

}  // namespace

Registrar::Registrar(std::initializer_list<OpSpec> specs) {
  for (const OpSpec& spec : specs) Table().emplace(spec.code, spec);
}

const OpSpec* FindOp(int32_t code) {
  const auto found = Table().find(code);
  return found == Table().end() ? nullptr : &found->second;
}

Status MatchForm(const OpSpec& op, const std::vector<const Tensor*>& inputs,
                 const std::vector<const Tensor*>& outputs, int* level) {
  for (const Form& form : op.forms) {
    const std::string pattern = form.pattern;
    const size_t arrow = pattern.find('>');
    char element = 0;
    if (!MatchSide(pattern.substr(0, arrow), inputs, &element)) continue;
    if (!MatchSide(pattern.substr(arrow + 1), outputs, &element)) continue;
    const int element_level = element == 0 ? 1 : ElementLevel(op.types, element);
    if (element_level == 0) continue;
    *level = std::max(form.level, element_level);
    for (const Tensor* operand : inputs) *level = std::max(*level, Info(operand->type).level);
    return Ok();
  }
  return BadData(std::string(op.name) + " does not take operands of the types" + Letters(inputs) +
                 " to" + Letters(outputs));
}

}  // namespace nnsim
