// PAD, PAD_V2 and MIRROR_PAD.
#include <cstring>

#include "op_registry.h"
#include "ops/rules.h"
#include "ops/strided.h"

namespace nnsim::ops_pad {
namespace {

constexpr int32_t kReflect = 0, kSymmetric = 1;

Status Prepare(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckSameQuantization(call));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 1, 4));
  const Dims& in = call.Shape(0);
  NNSIM_REQUIRE(call.Shape(1) == (Dims{call.Rank(0), 2}),
                "paddings need two numbers a dimension");
  const std::vector<int32_t> paddings = call.Ints(1);
  Dims dims;
  for (size_t d = 0; d < in.size(); ++d) {
    NNSIM_REQUIRE(paddings[2 * d] >= 0 && paddings[2 * d + 1] >= 0,
                  "paddings must not be negative");
    dims.push_back(in[d] + static_cast<uint32_t>(paddings[2 * d] + paddings[2 * d + 1]));
  }
  call.SetOut(0, dims);
  return Ok();
}

Status PrepareMirror(Call& call) {
  NNSIM_RETURN_IF_ERROR(Prepare(call));
  const int32_t mode = call.Int(2);
  NNSIM_REQUIRE(mode == kReflect || mode == kSymmetric, "no such mode");
  const std::vector<int32_t> paddings = call.Ints(1);
  for (size_t i = 0; i < paddings.size(); ++i) {
    const int64_t most = static_cast<int64_t>(call.Shape(0)[i / 2]) - (mode == kReflect ? 1 : 0);
    NNSIM_REQUIRE(paddings[i] <= most, "more padding than there is to mirror");
  }
  return Ok();
}

void CopyInside(Call& call) {
  const std::vector<int32_t> paddings = call.Ints(1);
  const Strides strides = CompactStrides(call.Out().dims);
  int64_t start = 0;
  for (size_t d = 0; d < strides.size(); ++d) start += paddings[2 * d] * strides[d];
  StridedCopy{call.Shape(0), call.Data<uint8_t>(0), 0, CompactStrides(call.Shape(0)),
              call.OutData<uint8_t>(), start, strides, Info(call.In(0).type).size}
      .Run();
}

void ExecutePad(Call& call) {
  FillZero(call.Out());
  CopyInside(call);
}

// The value is of the element's type; for quantized tensors it is an INT32 of stored numbers.
void ExecutePadV2(Call& call) {
  const size_t size = Info(call.In(0).type).size;
  uint8_t* out = call.OutData<uint8_t>();
  for (size_t i = 0; i < call.Out().count(); ++i) {
    std::memcpy(out + i * size, call.Data<uint8_t>(2), size);
  }
  CopyInside(call);
}

void ExecuteMirror(Call& call) {
  const std::vector<int32_t> paddings = call.Ints(1);
  const int64_t edge = call.Int(2) == kSymmetric ? 1 : 0;
  const Dims &in = call.Shape(0), &dims = call.Out().dims;
  const Strides strides = CompactStrides(in);
  const size_t size = Info(call.In(0).type).size;
  for (size_t i = 0; i < call.Out().count(); ++i) {
    size_t rest = i;
    int64_t source = 0;
    for (size_t d = dims.size(); d-- > 0;) {
      int64_t position = static_cast<int64_t>(rest % dims[d]) - paddings[2 * d];
      rest /= dims[d];
      const int64_t length = in[d];
      if (position < 0) position = -position - edge;
      if (position >= length) position = 2 * length - 2 - position + edge;
      source += position * strides[d];
    }
    std::memcpy(call.OutData<uint8_t>() + i * size,
                call.Data<uint8_t>(0) + static_cast<size_t>(source) * size, size);
  }
}

const Registrar kOps{
    {32, "PAD", "F2 Q2 H3 S4", {{2, "XI>X"}}, Prepare, ExecutePad},
    {69, "PAD_V2", "F3 H3 Q3 S4",
     {{3, "FIf>F"}, {3, "HIh>H"}, {3, "QIi>Q"}, {4, "SIi>S"}}, Prepare, ExecutePadV2},
    {104, "MIRROR_PAD", "F7 H7 Q7 S7 I7", {{7, "XIi>X"}}, PrepareMirror, ExecuteMirror},
};

}  // namespace
}  // namespace nnsim::ops_pad
