// CONCATENATION, PACK, SPLIT, TILE and GATHER: tensors cut and joined along one axis.
#include <algorithm>
#include <cstring>

#include "op_registry.h"
#include "ops/rules.h"
#include "ops/strided.h"

namespace nnsim::ops_join {
namespace {

Status PrepareConcatenation(Call& call) {
  const size_t count = call.input_count() - 1;
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 1, 4));
  uint32_t axis = 0;
  NNSIM_RETURN_IF_ERROR(ResolveAxis(call.Int(count), call.Rank(0), &axis));
  Dims dims = call.Shape(0);
  for (size_t i = 1; i < count; ++i) {
    NNSIM_REQUIRE(call.Rank(i) == call.Rank(0), "the inputs have different ranks");
    for (size_t d = 0; d < dims.size(); ++d) {
      NNSIM_REQUIRE(d == axis || call.Shape(i)[d] == dims[d],
                    "the inputs differ outside of the axis");
    }
    dims[axis] += call.Shape(i)[axis];
  }
  for (size_t i = 0; i < count; ++i) {
    if (!CheckSameQuantization(call, i).ok()) call.Need(3);
  }
  call.SetOut(0, dims);
  return Ok();
}

// Copies `bytes` of each row; pitches are the bytes from one row to the next.
void CopyColumns(const uint8_t* from, size_t from_pitch, uint8_t* to, size_t to_pitch, size_t rows,
                 size_t bytes) {
  for (size_t r = 0; r < rows && bytes != 0; ++r) {
    std::memcpy(to + r * to_pitch, from + r * from_pitch, bytes);
  }
}

// The bytes of input i in the output's quantization.
const uint8_t* Requantized(Call& call, size_t i, std::vector<uint8_t>* storage) {
  if (CheckSameQuantization(call, i).ok()) return call.Data<uint8_t>(i);
  storage->resize(call.In(i).size_bytes());
  Tensor target = call.Out();
  target.data = storage->data();
  FromFloats(call.Values(i), call.In(i).count(), target);
  return storage->data();
}

void ExecuteConcatenation(Call& call) {
  const size_t count = call.input_count() - 1;
  uint32_t axis = 0;
  (void)ResolveAxis(call.Int(count), call.Rank(0), &axis);  // prepare has seen it succeed
  const size_t size = Info(call.In(0).type).size;
  const AxisView out(call.Out().dims, axis);
  const size_t pitch = out.length * out.inner * size;
  size_t offset = 0;
  for (size_t i = 0; i < count; ++i) {
    std::vector<uint8_t> storage;
    const size_t bytes = call.Shape(i)[axis] * out.inner * size;
    CopyColumns(Requantized(call, i, &storage), bytes, call.OutData<uint8_t>() + offset, pitch,
                out.outer, bytes);
    offset += bytes;
  }
}

Status PreparePack(Call& call) {
  uint32_t axis = 0;
  NNSIM_RETURN_IF_ERROR(ResolveAxis(call.Int(0), call.Rank(1) + 1, &axis));
  for (size_t i = 1; i < call.input_count(); ++i) {
    NNSIM_REQUIRE(call.Shape(i) == call.Shape(1), "the inputs have different shapes");
    NNSIM_RETURN_IF_ERROR(CheckSameQuantization(call, i));
  }
  Dims dims = call.Shape(1);
  dims.insert(dims.begin() + axis, static_cast<uint32_t>(call.input_count() - 1));
  call.SetOut(0, dims);
  return Ok();
}

void ExecutePack(Call& call) {
  uint32_t axis = 0;
  (void)ResolveAxis(call.Int(0), call.Rank(1) + 1, &axis);  // prepare has seen it succeed
  const AxisView out(call.Out().dims, axis);
  const size_t bytes = out.inner * Info(call.In(1).type).size;
  for (size_t i = 1; i < call.input_count(); ++i) {
    CopyColumns(call.Data<uint8_t>(i), bytes, call.OutData<uint8_t>() + (i - 1) * bytes,
                out.length * bytes, out.outer, bytes);
  }
}

Status PrepareSplit(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 1, 4));
  uint32_t axis = 0;
  NNSIM_RETURN_IF_ERROR(ResolveAxis(call.Int(1), call.Rank(0), &axis));
  const int32_t parts = call.Int(2);
  NNSIM_REQUIRE(parts > 0 && static_cast<size_t>(parts) == call.output_count(),
                "the number of parts is not the number of outputs");
  Dims dims = call.Shape(0);
  NNSIM_REQUIRE(dims[axis] % static_cast<uint32_t>(parts) == 0, "the parts are not equal");
  dims[axis] /= static_cast<uint32_t>(parts);
  for (size_t o = 0; o < call.output_count(); ++o) {
    NNSIM_RETURN_IF_ERROR(CheckSameQuantization(call, 0, o));
    call.SetOut(o, dims);
  }
  return Ok();
}

void ExecuteSplit(Call& call) {
  uint32_t axis = 0;
  (void)ResolveAxis(call.Int(1), call.Rank(0), &axis);  // prepare has seen it succeed
  const size_t size = Info(call.In(0).type).size;
  const AxisView in(call.Shape(0), axis), out(call.Out().dims, axis);
  const size_t bytes = out.length * out.inner * size;
  for (size_t o = 0; o < call.output_count(); ++o) {
    CopyColumns(call.Data<uint8_t>(0) + o * bytes, in.length * in.inner * size,
                call.OutData<uint8_t>(o), bytes, in.outer, bytes);
  }
}

Status PrepareTile(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckSameQuantization(call));
  const std::vector<int32_t> multiples = call.Ints(1);
  NNSIM_REQUIRE(multiples.size() == call.Rank(0), "multiples need one number a dimension");
  Dims dims = call.Shape(0);
  for (size_t d = 0; d < dims.size(); ++d) {
    NNSIM_REQUIRE(multiples[d] > 0, "multiples must be above 0");
    dims[d] *= static_cast<uint32_t>(multiples[d]);
  }
  call.SetOut(0, dims);
  return Ok();
}

// A tiled tensor is [m0, d0, m1, d1, ...], read with stride 0 along each m.
void ExecuteTile(Call& call) {
  const Dims& in = call.Shape(0);
  const std::vector<int32_t> multiples = call.Ints(1);
  const Strides strides = CompactStrides(in);
  Dims dims;
  Strides repeated;
  for (size_t d = 0; d < in.size(); ++d) {
    dims.push_back(static_cast<uint32_t>(multiples[d]));
    dims.push_back(in[d]);
    repeated.push_back(0);
    repeated.push_back(strides[d]);
  }
  StridedCopy{dims, call.Data<uint8_t>(0), 0, repeated, call.OutData<uint8_t>(), 0,
              CompactStrides(dims), Info(call.In(0).type).size}
      .Run();
}

Status PrepareGather(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckSameQuantization(call));
  uint32_t axis = 0;
  NNSIM_RETURN_IF_ERROR(ResolveAxis(call.Int(1), call.Rank(0), &axis));
  const Dims &in = call.Shape(0), &indices = call.Shape(2);
  if (call.In(2).data != nullptr) {
    for (int32_t index : call.Ints(2)) {
      NNSIM_REQUIRE(index >= 0 && static_cast<uint32_t>(index) < in[axis],
                    "index " + std::to_string(index) + " is out of range");
    }
  }
  Dims dims(in.begin(), in.begin() + axis);
  dims.insert(dims.end(), indices.begin(), indices.end());
  dims.insert(dims.end(), in.begin() + axis + 1, in.end());
  call.SetOut(0, dims);
  return Ok();
}

void ExecuteGather(Call& call) {
  uint32_t axis = 0;
  (void)ResolveAxis(call.Int(1), call.Rank(0), &axis);  // prepare has seen it succeed
  const AxisView in(call.Shape(0), axis);
  const size_t bytes = in.inner * Info(call.In(0).type).size;
  const std::vector<int32_t> indices = call.Ints(2);
  for (size_t i = 0; i < indices.size(); ++i) {
    CopyColumns(call.Data<uint8_t>(0) + static_cast<size_t>(indices[i]) * bytes, in.length * bytes,
                call.OutData<uint8_t>() + i * bytes, indices.size() * bytes, in.outer, bytes);
  }
}

const Registrar kOps{
    {2, "CONCATENATION", kCommonTypes, {{1, "X*i>X"}}, PrepareConcatenation, ExecuteConcatenation},
    {103, "PACK", "F6 H6 I6 Q6 S6", {{6, "iX*>X"}}, PreparePack, ExecutePack},
    {87, "SPLIT", "F3 H3 I3 Q3 S4", {{3, "Xii>X*"}}, PrepareSplit, ExecuteSplit},
    {89, "TILE", "F3 H3 I3 Q3 S4", {{3, "XI>X"}}, PrepareTile, ExecuteTile},
    {51, "GATHER", "F3 H3 I3 Q3 S4", {{3, "XiI>X"}}, PrepareGather, ExecuteGather},
};

}  // namespace
}  // namespace nnsim::ops_join
