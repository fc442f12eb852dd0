// Reductions over several axes, and the position of the extreme along one.
#include <cmath>

#include "op_registry.h"
#include "ops/rules.h"

namespace nnsim::ops_reduce {
namespace {

// Which axes of input 0 are reduced; no axes at all means all of them.
Status ReadAxes(Call& call, std::vector<bool>* reduced) {
  reduced->assign(call.Rank(0), false);
  for (int32_t axis : call.Ints(1)) {
    uint32_t resolved = 0;
    NNSIM_RETURN_IF_ERROR(ResolveAxis(axis, call.Rank(0), &resolved));
    (*reduced)[resolved] = true;
  }
  return Ok();
}

Status Prepare(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 1, 4));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 1, 1, 1));
  std::vector<bool> reduced;
  NNSIM_RETURN_IF_ERROR(ReadAxes(call, &reduced));
  const bool keep = call.In(2).type == ANEURALNETWORKS_BOOL ? call.Bool(2) : call.Int(2) > 0;
  Dims dims;
  for (size_t d = 0; d < reduced.size(); ++d) {
    if (!reduced[d]) dims.push_back(call.Shape(0)[d]);
    if (reduced[d] && keep) dims.push_back(1);
  }
  // A tensor always has a rank: everything reduced leaves one element.
  if (dims.empty()) dims.push_back(1);
  call.SetOut(0, dims);
  return Ok();
}

Status PrepareSameQuantization(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckSameQuantization(call));
  return Prepare(call);
}

// Calls visit(input index, output index) for every element of the input.
template <typename Visit>
void ForEach(Call& call, Visit visit) {
  std::vector<bool> reduced;
  (void)ReadAxes(call, &reduced);  // prepare has seen it succeed
  const Dims& dims = call.Shape(0);
  std::vector<size_t> strides(dims.size(), 0);
  size_t stride = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    if (reduced[d]) continue;
    strides[d] = stride;
    stride *= dims[d];
  }
  const size_t count = call.In(0).count();
  for (size_t i = 0; i < count; ++i) {
    size_t rest = i, out = 0;
    for (size_t d = dims.size(); d-- > 0;) {
      out += rest % dims[d] * strides[d];
      rest /= dims[d];
    }
    visit(i, out);
  }
}

template <typename F>
std::function<void(Call&)> Reduce(double start, F f) {
  return [start, f](Call& call) {
    const float* in = call.Values(0);
    std::vector<double> sums(call.Out().count(), start);
    ForEach(call, [&](size_t i, size_t o) { sums[o] = f(sums[o], static_cast<double>(in[i])); });
    float* out = call.Results();
    for (size_t o = 0; o < sums.size(); ++o) out[o] = static_cast<float>(sums[o]);
  };
}

void ExecuteMean(Call& call) {
  const float* in = call.Values(0);
  std::vector<double> sums(call.Out().count(), 0.0);
  ForEach(call, [&](size_t i, size_t o) { sums[o] += in[i]; });
  const double count = static_cast<double>(call.In(0).count()) / static_cast<double>(sums.size());
  float* out = call.Results();
  for (size_t o = 0; o < sums.size(); ++o) out[o] = static_cast<float>(sums[o] / count);
}

Status PrepareArg(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 1, 4));
  uint32_t axis = 0;
  NNSIM_RETURN_IF_ERROR(ResolveAxis(call.Int(1), call.Rank(0), &axis));
  Dims dims = call.Shape(0);
  dims.erase(dims.begin() + axis);
  if (dims.empty()) dims.push_back(1);
  call.SetOut(0, dims);
  return Ok();
}

// The first one wins among equals.
template <typename T>
void FindExtreme(const T* in, const AxisView& view, bool least, int32_t* out) {
  for (size_t line = 0; line < view.outer * view.inner; ++line) {
    const T* start = in + line / view.inner * view.length * view.inner + line % view.inner;
    size_t best = 0;
    for (size_t i = 1; i < view.length; ++i) {
      const T value = start[i * view.inner], record = start[best * view.inner];
      if (least ? value < record : value > record) best = i;
    }
    out[line] = static_cast<int32_t>(best);
  }
}

std::function<void(Call&)> Arg(bool least) {
  return [least](Call& call) {
    uint32_t axis = 0;
    (void)ResolveAxis(call.Int(1), call.Rank(0), &axis);  // prepare has seen it succeed
    const AxisView view(call.Shape(0), axis);
    if (call.In(0).type == ANEURALNETWORKS_TENSOR_INT32) {
      FindExtreme(call.Data<int32_t>(0), view, least, call.OutData<int32_t>());
    } else {
      FindExtreme(call.Values(0), view, least, call.OutData<int32_t>());
    }
  };
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const Registrar kOps{
    {31, "MEAN", "F2 Q2 H3 S4", {{2, "XIi>X"}}, PrepareSameQuantization, ExecuteMean},
    {39, "ARGMAX", "F3 H3 I3 Q3 S4", {{3, "Xi>I"}}, PrepareArg, Arg(false)},
    {40, "ARGMIN", "F3 H3 I3 Q3 S4", {{3, "Xi>I"}}, PrepareArg, Arg(true)},
    {75, "REDUCE_ALL", "", {{3, "BIb>B"}}, Prepare,
     Reduce(1, [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; })},
    {76, "REDUCE_ANY", "", {{3, "BIb>B"}}, Prepare,
     Reduce(0, [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; })},
    {77, "REDUCE_MAX", "F3 H3 Q3 S4", {{3, "XIb>X"}}, PrepareSameQuantization,
     Reduce(-kInfinity, [](double a, double b) { return a > b ? a : b; })},
    {78, "REDUCE_MIN", "F3 H3 Q3 S4", {{3, "XIb>X"}}, PrepareSameQuantization,
     Reduce(kInfinity, [](double a, double b) { return a < b ? a : b; })},
    {79, "REDUCE_PROD", "F3 H3", {{3, "XIb>X"}}, Prepare,
     Reduce(1, [](double a, double b) { return a * b; })},
    {80, "REDUCE_SUM", "F3 H3", {{3, "XIb>X"}}, Prepare,
     Reduce(0, [](double a, double b) { return a + b; })},
};

}  // namespace
}  // namespace nnsim::ops_reduce
