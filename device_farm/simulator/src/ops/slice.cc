// SLICE, STRIDED_SLICE, REVERSE and TRANSPOSE: reading a tensor with other strides.
#include <algorithm>

#include "op_registry.h"
#include "ops/rules.h"
#include "ops/strided.h"

namespace nnsim::ops_slice {
namespace {

void Read(Call& call, const Dims& dims, int64_t start, const Strides& strides) {
  StridedCopy{dims, call.Data<uint8_t>(0), start, strides, call.OutData<uint8_t>(), 0,
              CompactStrides(dims), Info(call.In(0).type).size}
      .Run();
}

Status PrepareSlice(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckSameQuantization(call));
  const Dims& in = call.Shape(0);
  const std::vector<int32_t> begin = call.Ints(1), size = call.Ints(2);
  NNSIM_REQUIRE(begin.size() == in.size() && size.size() == in.size(),
                "begin and size need one number a dimension");
  Dims dims;
  for (size_t d = 0; d < in.size(); ++d) {
    const int64_t length = size[d] == -1 ? static_cast<int64_t>(in[d]) - begin[d] : size[d];
    NNSIM_REQUIRE(begin[d] >= 0 && length >= 0 && begin[d] + length <= in[d],
                  "the slice leaves the input");
    dims.push_back(static_cast<uint32_t>(length));
  }
  call.SetOut(0, dims);
  return Ok();
}

void ExecuteSlice(Call& call) {
  const std::vector<int32_t> begin = call.Ints(1);
  const Strides strides = CompactStrides(call.Shape(0));
  int64_t start = 0;
  for (size_t d = 0; d < begin.size(); ++d) start += begin[d] * strides[d];
  Read(call, call.Out().dims, start, strides);
}

struct Range3 {
  int64_t begin, count, stride;
};

// Resolves begin, end and stride of each dimension; masks are bit sets over dimensions.
Status ReadRanges(Call& call, std::vector<Range3>* ranges) {
  const Dims& in = call.Shape(0);
  const std::vector<int32_t> begin = call.Ints(1), end = call.Ints(2), stride = call.Ints(3);
  NNSIM_REQUIRE(begin.size() == in.size() && end.size() == in.size() && stride.size() == in.size(),
                "begin, end and strides need one number a dimension");
  const int32_t begin_mask = call.Int(4), end_mask = call.Int(5), shrink = call.Int(6);
  for (size_t d = 0; d < in.size(); ++d) {
    const int64_t size = in[d], step = stride[d];
    const int32_t bit = 1 << d;
    NNSIM_REQUIRE(step != 0, "a stride is 0");
    NNSIM_REQUIRE(step > 0 || !(shrink & bit), "a shrunk dimension takes no negative stride");
    const auto resolve = [&](int64_t value) {
      if (value < 0) value += size;
      return step > 0 ? std::clamp<int64_t>(value, 0, size)
                      : std::clamp<int64_t>(value, -1, size - 1);
    };
    const int64_t from = begin_mask & bit ? (step > 0 ? 0 : size - 1) : resolve(begin[d]);
    const int64_t to = end_mask & bit ? (step > 0 ? size : -1) : resolve(end[d]);
    const int64_t span = step > 0 ? to - from : from - to;
    const int64_t magnitude = step > 0 ? step : -step;
    const int64_t count = span <= 0 ? 0 : (span + magnitude - 1) / magnitude;
    NNSIM_REQUIRE(!(shrink & bit) || count == 1, "a shrunk dimension is not one element long");
    ranges->push_back({from, count, step});
  }
  return Ok();
}

Status PrepareStridedSlice(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckSameQuantization(call));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 1, 4));
  std::vector<Range3> ranges;
  NNSIM_RETURN_IF_ERROR(ReadRanges(call, &ranges));
  Dims dims;
  for (size_t d = 0; d < ranges.size(); ++d) {
    if (call.Int(6) & (1 << d)) continue;
    NNSIM_REQUIRE(ranges[d].count > 0, "the slice is empty");
    dims.push_back(static_cast<uint32_t>(ranges[d].count));
  }
  if (dims.empty()) dims.push_back(1);
  call.SetOut(0, dims);
  return Ok();
}

void ExecuteStridedSlice(Call& call) {
  std::vector<Range3> ranges;
  (void)ReadRanges(call, &ranges);  // prepare has seen it succeed
  const Strides compact = CompactStrides(call.Shape(0));
  Dims dims;
  Strides strides;
  int64_t start = 0;
  for (size_t d = 0; d < ranges.size(); ++d) {
    dims.push_back(static_cast<uint32_t>(ranges[d].count));
    strides.push_back(ranges[d].stride * compact[d]);
    start += ranges[d].begin * compact[d];
  }
  Read(call, dims, start, strides);
}

Status ReadReverseAxis(Call& call, uint32_t* axis) {
  const std::vector<int32_t> axes = call.Ints(1);
  NNSIM_REQUIRE(axes.size() == 1, "exactly one axis is reversed");
  return ResolveAxis(axes[0], call.Rank(0), axis);
}

Status PrepareReverse(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckSameQuantization(call));
  uint32_t axis = 0;
  NNSIM_RETURN_IF_ERROR(ReadReverseAxis(call, &axis));
  return SameShapeAsInput(call);
}

void ExecuteReverse(Call& call) {
  uint32_t axis = 0;
  (void)ReadReverseAxis(call, &axis);  // prepare has seen it succeed
  Strides strides = CompactStrides(call.Shape(0));
  const int64_t start = (static_cast<int64_t>(call.Shape(0)[axis]) - 1) * strides[axis];
  strides[axis] = -strides[axis];
  Read(call, call.Shape(0), start, strides);
}

// An omitted permutation reverses the dimensions.
Status ReadOrder(Call& call, std::vector<size_t>* order) {
  const size_t rank = call.Rank(0);
  if (!call.Has(1)) {
    for (size_t d = rank; d-- > 0;) order->push_back(d);
    return Ok();
  }
  std::vector<bool> seen(rank, false);
  for (int32_t axis : call.Ints(1)) {
    NNSIM_REQUIRE(axis >= 0 && static_cast<size_t>(axis) < rank && !seen[axis],
                  "the permutation names an axis twice or none");
    seen[axis] = true;
    order->push_back(static_cast<size_t>(axis));
  }
  NNSIM_REQUIRE(order->size() == rank, "the permutation needs one number a dimension");
  return Ok();
}

Status PrepareTranspose(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckSameQuantization(call));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 1, 4));
  std::vector<size_t> order;
  NNSIM_RETURN_IF_ERROR(ReadOrder(call, &order));
  Dims dims;
  for (size_t d : order) dims.push_back(call.Shape(0)[d]);
  call.SetOut(0, dims);
  return Ok();
}

void ExecuteTranspose(Call& call) {
  std::vector<size_t> order;
  (void)ReadOrder(call, &order);  // prepare has seen it succeed
  Permute(call.Data<uint8_t>(0), call.Shape(0), order, call.OutData<uint8_t>(),
          Info(call.In(0).type).size);
}

const Registrar kOps{
    {86, "SLICE", "F3 H3 I3 Q3 S4", {{3, "XII>X"}}, PrepareSlice, ExecuteSlice},
    {35, "STRIDED_SLICE", "F2 Q2 H3 S4", {{2, "XIIIiii>X"}}, PrepareStridedSlice,
     ExecuteStridedSlice},
    {105, "REVERSE", "F7 H7 Q7 S7 I7", {{7, "XI>X"}}, PrepareReverse, ExecuteReverse},
    {37, "TRANSPOSE", "F2 Q2 H3 S4", {{2, "XI>X"}}, PrepareTranspose, ExecuteTranspose},
};

}  // namespace
}  // namespace nnsim::ops_slice
