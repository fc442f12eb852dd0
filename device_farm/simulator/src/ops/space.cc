// Operations that trade space, depth, batch and channel groups: all are permutations.
#include <algorithm>

#include "op_registry.h"
#include "ops/rules.h"
#include "ops/strided.h"
#include "ops/window.h"

namespace nnsim::ops_space {
namespace {

void PermuteInput(Call& call, const Dims& dims, const std::vector<size_t>& order) {
  Permute(call.Data<uint8_t>(0), dims, order, call.OutData<uint8_t>(),
          Info(call.In(0).type).size);
}

bool ReadLayout(Call& call, size_t operand) {
  return call.input_count() > operand && call.Bool(operand);
}

Status CheckImage(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckSameQuantization(call));
  return CheckRank(call, 0, 4, 4);
}

Status PrepareDepthToSpace(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckImage(call));
  const bool nchw = ReadLayout(call, 2);
  const int32_t block = call.Int(1);
  Image image = ReadImage(call.Shape(0), nchw);
  NNSIM_REQUIRE(block > 0 && image.depth % static_cast<uint32_t>(block * block) == 0,
                "the depth is not a multiple of the block");
  const uint32_t size = static_cast<uint32_t>(block);
  image = {image.batch, image.height * size, image.width * size, image.depth / (size * size)};
  call.SetOut(0, ImageDims(image, nchw));
  return Ok();
}

void ExecuteDepthToSpace(Call& call) {
  const bool nchw = ReadLayout(call, 2);
  const Image in = ReadImage(call.Shape(0), nchw);
  const uint32_t block = static_cast<uint32_t>(call.Int(1)), depth = in.depth / (block * block);
  if (nchw) {
    PermuteInput(call, {in.batch, block, block, depth, in.height, in.width}, {0, 3, 4, 1, 5, 2});
  } else {
    PermuteInput(call, {in.batch, in.height, in.width, block, block, depth}, {0, 1, 3, 2, 4, 5});
  }
}

Status PrepareSpaceToDepth(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckImage(call));
  const bool nchw = ReadLayout(call, 2);
  const int32_t block = call.Int(1);
  Image image = ReadImage(call.Shape(0), nchw);
  const uint32_t size = static_cast<uint32_t>(block);
  NNSIM_REQUIRE(block > 0 && image.height % size == 0 && image.width % size == 0,
                "height and width must be multiples of the block");
  image = {image.batch, image.height / size, image.width / size, image.depth * size * size};
  call.SetOut(0, ImageDims(image, nchw));
  return Ok();
}

void ExecuteSpaceToDepth(Call& call) {
  const bool nchw = ReadLayout(call, 2);
  const Image in = ReadImage(call.Shape(0), nchw);
  const uint32_t block = static_cast<uint32_t>(call.Int(1));
  const uint32_t height = in.height / block, width = in.width / block;
  if (nchw) {
    PermuteInput(call, {in.batch, in.depth, height, block, width, block}, {0, 3, 5, 1, 2, 4});
  } else {
    PermuteInput(call, {in.batch, height, block, width, block, in.depth}, {0, 1, 3, 2, 4, 5});
  }
}

Status ReadBlock(Call& call, uint32_t* height, uint32_t* width) {
  const std::vector<int32_t> block = call.Ints(1);
  NNSIM_REQUIRE(block.size() == 2 && block[0] > 0 && block[1] > 0,
                "the block needs two numbers above 0");
  *height = static_cast<uint32_t>(block[0]);
  *width = static_cast<uint32_t>(block[1]);
  return Ok();
}

Status PrepareBatchToSpace(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckImage(call));
  const bool nchw = ReadLayout(call, 2);
  uint32_t block_h = 1, block_w = 1;
  NNSIM_RETURN_IF_ERROR(ReadBlock(call, &block_h, &block_w));
  Image image = ReadImage(call.Shape(0), nchw);
  NNSIM_REQUIRE(image.batch % (block_h * block_w) == 0, "the batch is not a multiple of the block");
  image = {image.batch / (block_h * block_w), image.height * block_h, image.width * block_w,
           image.depth};
  call.SetOut(0, ImageDims(image, nchw));
  return Ok();
}

void ExecuteBatchToSpace(Call& call) {
  const bool nchw = ReadLayout(call, 2);
  const Image in = ReadImage(call.Shape(0), nchw);
  uint32_t block_h = 1, block_w = 1;
  (void)ReadBlock(call, &block_h, &block_w);  // prepare has seen it succeed
  const uint32_t batch = in.batch / (block_h * block_w);
  if (nchw) {
    PermuteInput(call, {block_h, block_w, batch, in.depth, in.height, in.width},
                 {2, 3, 4, 0, 5, 1});
  } else {
    PermuteInput(call, {block_h, block_w, batch, in.height, in.width, in.depth},
                 {2, 3, 0, 4, 1, 5});
  }
}

// The input with its paddings (top, bottom, left, right).
Status PaddedImage(Call& call, bool nchw, Image* image) {
  NNSIM_REQUIRE(call.Shape(2) == (Dims{2, 2}), "paddings have shape [2, 2]");
  const std::vector<int32_t> paddings = call.Ints(2);
  NNSIM_REQUIRE(*std::min_element(paddings.begin(), paddings.end()) >= 0,
                "paddings must not be negative");
  *image = ReadImage(call.Shape(0), nchw);
  image->height += static_cast<uint32_t>(paddings[0] + paddings[1]);
  image->width += static_cast<uint32_t>(paddings[2] + paddings[3]);
  return Ok();
}

Status PrepareSpaceToBatch(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckImage(call));
  const bool nchw = ReadLayout(call, 3);
  uint32_t block_h = 1, block_w = 1;
  NNSIM_RETURN_IF_ERROR(ReadBlock(call, &block_h, &block_w));
  Image image;
  NNSIM_RETURN_IF_ERROR(PaddedImage(call, nchw, &image));
  NNSIM_REQUIRE(image.height % block_h == 0 && image.width % block_w == 0,
                "padded height and width must be multiples of the block");
  image = {image.batch * block_h * block_w, image.height / block_h, image.width / block_w,
           image.depth};
  call.SetOut(0, ImageDims(image, nchw));
  return Ok();
}

void ExecuteSpaceToBatch(Call& call) {
  const bool nchw = ReadLayout(call, 3);
  uint32_t block_h = 1, block_w = 1;
  Image image;
  (void)ReadBlock(call, &block_h, &block_w);  // prepare has seen both succeed
  (void)PaddedImage(call, nchw, &image);
  const std::vector<int32_t> paddings = call.Ints(2);
  const size_t size = Info(call.In(0).type).size;
  std::vector<uint32_t> storage(call.Out().size_bytes() / sizeof(uint32_t) + 1);
  Tensor padded = call.Out();
  padded.dims = ImageDims(image, nchw);
  padded.data = reinterpret_cast<uint8_t*>(storage.data());
  FillZero(padded);
  const Strides strides = CompactStrides(padded.dims);
  const size_t h = nchw ? 2 : 1, w = h + 1;
  StridedCopy{call.Shape(0), call.Data<uint8_t>(0), 0, CompactStrides(call.Shape(0)), padded.data,
              paddings[0] * strides[h] + paddings[2] * strides[w], strides, size}
      .Run();
  const uint32_t height = image.height / block_h, width = image.width / block_w;
  if (nchw) {
    Permute(padded.data, {image.batch, image.depth, height, block_h, width, block_w},
            {3, 5, 0, 1, 2, 4}, call.OutData<uint8_t>(), size);
  } else {
    Permute(padded.data, {image.batch, height, block_h, width, block_w, image.depth},
            {2, 4, 0, 1, 3, 5}, call.OutData<uint8_t>(), size);
  }
}

Status PrepareShuffle(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckSameQuantization(call));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 1, 4));
  uint32_t axis = 0;
  NNSIM_RETURN_IF_ERROR(ResolveAxis(call.Int(2), call.Rank(0), &axis));
  const int32_t groups = call.Int(1);
  NNSIM_REQUIRE(groups > 0 && call.Shape(0)[axis] % static_cast<uint32_t>(groups) == 0,
                "the channels are not a multiple of the groups");
  return SameShapeAsInput(call);
}

void ExecuteShuffle(Call& call) {
  uint32_t axis = 0;
  (void)ResolveAxis(call.Int(2), call.Rank(0), &axis);  // prepare has seen it succeed
  const AxisView view(call.Shape(0), axis);
  const uint32_t groups = static_cast<uint32_t>(call.Int(1));
  PermuteInput(call,
               {static_cast<uint32_t>(view.outer), groups,
                static_cast<uint32_t>(view.length) / groups, static_cast<uint32_t>(view.inner)},
               {0, 2, 1, 3});
}

const Registrar kOps{
    {5, "DEPTH_TO_SPACE", kCommonTypes, {{1, "Xi>X"}, {3, "Xib>X"}}, PrepareDepthToSpace,
     ExecuteDepthToSpace},
    {26, "SPACE_TO_DEPTH", kCommonTypes, {{1, "Xi>X"}, {3, "Xib>X"}}, PrepareSpaceToDepth,
     ExecuteSpaceToDepth},
    {29, "BATCH_TO_SPACE_ND", "F2 Q2 H3 S4", {{2, "XI>X"}, {3, "XIb>X"}}, PrepareBatchToSpace,
     ExecuteBatchToSpace},
    {33, "SPACE_TO_BATCH_ND", "F2 Q2 H3 S4", {{2, "XII>X"}, {3, "XIIb>X"}}, PrepareSpaceToBatch,
     ExecuteSpaceToBatch},
    {46, "CHANNEL_SHUFFLE", "F3 H3 Q3 S4", {{3, "Xii>X"}}, PrepareShuffle, ExecuteShuffle},
};

}  // namespace
}  // namespace nnsim::ops_space
