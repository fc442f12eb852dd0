// Comparisons, logic and selection.
#include "op_registry.h"
#include "ops/broadcast.h"
#include "ops/rules.h"

namespace nnsim::ops_compare {
namespace {

Status PrepareBinary(Call& call) {
  Dims dims;
  NNSIM_RETURN_IF_ERROR(BroadcastShape(call.Shape(0), call.Shape(1), &dims));
  call.SetOut(0, dims);
  return Ok();
}

template <typename Compare>
std::function<void(Call&)> Comparison(Compare compare) {
  return [=](Call& call) {
    const Dims& dims = call.Out().dims;
    if (call.In(0).type == ANEURALNETWORKS_TENSOR_INT32) {
      BroadcastApply(call.Data<int32_t>(0), call.Shape(0), call.Data<int32_t>(1), call.Shape(1),
                     call.OutData<uint8_t>(), dims, compare);
    } else {
      BroadcastApply(call.Values(0), call.Shape(0), call.Values(1), call.Shape(1),
                     call.OutData<uint8_t>(), dims, compare);
    }
  };
}

void ExecuteNot(Call& call) {
  const size_t count = call.In(0).count();
  for (size_t i = 0; i < count; ++i) {
    call.OutData<uint8_t>()[i] = call.Data<uint8_t>(0)[i] == 0;
  }
}

Status PrepareSelect(Call& call) {
  NNSIM_REQUIRE(call.Shape(0) == call.Shape(1) && call.Shape(0) == call.Shape(2),
                "the three inputs need the same shape");
  return SameShapeAsInput(call);
}

void ExecuteSelect(Call& call) {
  const size_t count = call.In(0).count();
  const uint8_t* choose = call.Data<uint8_t>(0);
  if (call.In(1).type == ANEURALNETWORKS_TENSOR_INT32) {
    for (size_t i = 0; i < count; ++i) {
      call.OutData<int32_t>()[i] = call.Data<int32_t>(choose[i] ? 1 : 2)[i];
    }
    return;
  }
  const float* yes = call.Values(1);
  const float* no = call.Values(2);
  float* out = call.Results();
  for (size_t i = 0; i < count; ++i) out[i] = choose[i] ? yes[i] : no[i];
}

constexpr const char kTypes[] = "F3 H3 I3 Q3 B3 S4";

const Registrar kOps{
    {48, "EQUAL", kTypes, {{3, "XX>B"}}, PrepareBinary,
     Comparison([](auto a, auto b) { return a == b; })},
    {53, "GREATER", kTypes, {{3, "XX>B"}}, PrepareBinary,
     Comparison([](auto a, auto b) { return a > b; })},
    {54, "GREATER_EQUAL", kTypes, {{3, "XX>B"}}, PrepareBinary,
     Comparison([](auto a, auto b) { return a >= b; })},
    {58, "LESS", kTypes, {{3, "XX>B"}}, PrepareBinary,
     Comparison([](auto a, auto b) { return a < b; })},
    {59, "LESS_EQUAL", kTypes, {{3, "XX>B"}}, PrepareBinary,
     Comparison([](auto a, auto b) { return a <= b; })},
    {68, "NOT_EQUAL", kTypes, {{3, "XX>B"}}, PrepareBinary,
     Comparison([](auto a, auto b) { return a != b; })},
    {61, "LOGICAL_AND", "", {{3, "BB>B"}}, PrepareBinary,
     Comparison([](float a, float b) { return a != 0 && b != 0; })},
    {63, "LOGICAL_OR", "", {{3, "BB>B"}}, PrepareBinary,
     Comparison([](float a, float b) { return a != 0 || b != 0; })},
    {62, "LOGICAL_NOT", "", {{3, "B>B"}}, SameShapeAsInput, ExecuteNot},
    {84, "SELECT", "F3 H3 I3 Q3 S4", {{3, "BXX>X"}}, PrepareSelect, ExecuteSelect},
};

}  // namespace
}  // namespace nnsim::ops_compare
