// Operations that give the same elements another shape, and conversions between types.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "op_registry.h"
#include "ops/rules.h"

namespace nnsim::ops_reshape {
namespace {

void CopyBytes(Call& call) {
  if (call.In(0).size_bytes() != 0) {
    std::memcpy(call.OutData<uint8_t>(), call.Data<uint8_t>(0), call.In(0).size_bytes());
  }
}

Status PrepareReshape(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckSameQuantization(call));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 1, 1, 1));
  const uint64_t count = call.In(0).count();
  uint64_t known = 1;
  Dims dims;
  size_t stretch = SIZE_MAX;
  for (int32_t size : call.Ints(1)) {
    NNSIM_REQUIRE(size >= 0 || (size == -1 && stretch == SIZE_MAX),
                  "at most one dimension may be -1, none may be less");
    if (size == -1) {
      stretch = dims.size();
    } else {
      known *= static_cast<uint64_t>(size);
    }
    dims.push_back(static_cast<uint32_t>(size));
  }
  if (stretch != SIZE_MAX) {
    NNSIM_REQUIRE(known != 0, "-1 beside an empty dimension");
    dims[stretch] = static_cast<uint32_t>(count / known);
  }
  NNSIM_REQUIRE(ElementCount(dims) == count, "the new shape " + ToString(dims) + " does not hold " +
                                                 std::to_string(count) + " elements");
  call.SetOut(0, dims);
  return Ok();
}

Status PrepareSqueeze(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckSameQuantization(call));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 1, 4));
  const Dims& in = call.Shape(0);
  std::vector<bool> drop(in.size(), false);
  if (call.Has(1)) {
    for (int32_t axis : call.Ints(1)) {
      uint32_t resolved = 0;
      NNSIM_RETURN_IF_ERROR(ResolveAxis(axis, call.Rank(0), &resolved));
      NNSIM_REQUIRE(in[resolved] == 1, "a squeezed dimension is not 1");
      drop[resolved] = true;
    }
  } else {
    for (size_t d = 0; d < in.size(); ++d) drop[d] = in[d] == 1;
  }
  Dims dims;
  for (size_t d = 0; d < in.size(); ++d) {
    if (!drop[d]) dims.push_back(in[d]);
  }
  if (dims.empty()) dims.push_back(1);
  call.SetOut(0, dims);
  return Ok();
}

Status PrepareExpandDims(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckSameQuantization(call));
  uint32_t axis = 0;
  NNSIM_RETURN_IF_ERROR(ResolveAxis(call.Int(1), call.Rank(0) + 1, &axis));
  Dims dims = call.Shape(0);
  dims.insert(dims.begin() + axis, 1);
  call.SetOut(0, dims);
  return Ok();
}

Status PrepareRank(Call& call) {
  call.SetOut(0, {});
  return Ok();
}

void ExecuteRank(Call& call) { *call.OutData<int32_t>() = static_cast<int32_t>(call.Rank(0)); }

Status PrepareCast(Call& call) {
  const int32_t from = call.In(0).type, to = call.Out().type;
  const std::string both = "FHIQS";
  const bool convertible = both.find(Info(from).letter) != std::string::npos &&
                           both.find(Info(to).letter) != std::string::npos;
  NNSIM_REQUIRE(convertible || from == to, std::string("no cast from ") + Info(from).name +
                                               " to " + Info(to).name);
  if (from == to && IsQuantized(from) && from != ANEURALNETWORKS_TENSOR_QUANT8_ASYMM) call.Need(4);
  return SameShapeAsInput(call);
}

// Quantized numbers are cast as plain integers; scales do not matter.
void ExecuteCast(Call& call) {
  if (call.In(0).type == call.Out().type) return CopyBytes(call);
  Tensor in = call.In(0), out = call.Out();
  in.scale = out.scale = 0;
  in.zero_point = out.zero_point = 0;
  std::vector<float> values(in.count());
  ToFloats(in, values.size(), values.data());
  // Casting to an integer drops the fraction; storing would round.
  if (out.type != ANEURALNETWORKS_TENSOR_FLOAT32 && out.type != ANEURALNETWORKS_TENSOR_FLOAT16) {
    for (float& value : values) value = std::trunc(value);
  }
  FromFloats(values.data(), values.size(), out);
}

void CopyValues(Call& call) {
  std::copy_n(call.Values(0), call.In(0).count(), call.Results());
}

Status PrepareFill(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 1, 1));
  Dims dims;
  for (int32_t size : call.Ints(0)) {
    NNSIM_REQUIRE(size > 0, "dimensions must be above 0");
    dims.push_back(static_cast<uint32_t>(size));
  }
  call.SetOut(0, dims);
  return Ok();
}

void ExecuteFill(Call& call) {
  const size_t size = Info(call.Out().type).size;
  for (size_t i = 0; i < call.Out().count(); ++i) {
    std::memcpy(call.OutData<uint8_t>() + i * size, call.Data<uint8_t>(1), size);
  }
}

const Registrar kOps{
    {22, "RESHAPE", "F1 Q1 H3 S4 I6", {{1, "XI>X"}}, PrepareReshape, CopyBytes},
    {34, "SQUEEZE", "F2 Q2 H3 S4", {{2, "XI>X"}}, PrepareSqueeze, CopyBytes},
    {50, "EXPAND_DIMS", "F3 H3 I3 Q3 S4", {{3, "Xi>X"}}, PrepareExpandDims, CopyBytes},
    {101, "RANK", "F4 H4 I4 Q4 S4 B4 W4 U4 Y4 C4", {{4, "X>i"}}, PrepareRank, ExecuteRank},
    {45, "CAST", "F3 H3 I3 Q3 S4 B4 W4 U4 Y4", {{3, "X>F"}, {3, "X>H"}, {3, "X>I"}, {3, "X>Q"},
      {4, "X>X"}}, PrepareCast, ExecuteCast},
    {72, "QUANTIZE", "F3 H3", {{3, "X>Q"}, {4, "X>S"}}, SameShapeAsInput, CopyValues},
    {6, "DEQUANTIZE", "Q1 Y3 C3 S4", {{1, "X>F"}, {3, "X>H"}}, SameShapeAsInput, CopyValues},
    {100, "FILL", "", {{4, "If>F"}, {4, "Ih>H"}, {4, "Ii>I"}}, PrepareFill, ExecuteFill},
};

}  // namespace
}  // namespace nnsim::ops_reshape
