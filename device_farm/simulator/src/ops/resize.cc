// RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR.
#include <algorithm>
#include <cmath>

#include "op_registry.h"
#include "ops/conv.h"
#include "parallel.h"

namespace nnsim::ops_resize {
namespace {

struct ResizeArgs {
  ConvArgs images;
  bool align_corners = false, half_pixel = false;
};

// A size in pixels, or a factor of the input's size.
Status ReadSize(Call& call, size_t operand, uint32_t input, uint32_t* output) {
  if (call.In(operand).type == ANEURALNETWORKS_INT32) {
    const int32_t size = call.Int(operand);
    NNSIM_REQUIRE(size > 0, "the output size must be above 0");
    *output = static_cast<uint32_t>(size);
    return Ok();
  }
  const float size = std::floor(static_cast<float>(input) * call.Real(operand));
  NNSIM_REQUIRE((size >= 1 || input == 0) && size < 1e6f, "the scale gives no usable size");
  *output = static_cast<uint32_t>(size);
  return Ok();
}

Status ReadArgs(Call& call, ResizeArgs* args) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 4, 4));
  ConvArgs& images = args->images;
  images.nchw = call.input_count() > 3 && call.Bool(3);
  args->align_corners = call.input_count() > 4 && call.Bool(4);
  args->half_pixel = call.input_count() > 5 && call.Bool(5);
  NNSIM_REQUIRE(!(args->align_corners && args->half_pixel) || call.deferred(),
                "align_corners and half_pixel_centers exclude each other");
  images.in = images.out = ReadImage(call.Shape(0), images.nchw);
  NNSIM_RETURN_IF_ERROR(ReadSize(call, 1, images.in.width, &images.out.width));
  return ReadSize(call, 2, images.in.height, &images.out.height);
}

Status Prepare(Call& call) {
  ResizeArgs args;
  NNSIM_RETURN_IF_ERROR(ReadArgs(call, &args));
  NNSIM_RETURN_IF_ERROR(CheckSameQuantization(call));
  call.SetOut(0, ImageDims(args.images.out, args.images.nchw));
  call.SetMacs(4.0 * static_cast<double>(call.Out().count()));
  return Ok();
}

// Where output position `position` falls in the input.
float Source(const ResizeArgs& args, uint32_t position, uint32_t in, uint32_t out, bool centre) {
  const float scale = args.align_corners && out > 1
                          ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
                          : static_cast<float>(in) / static_cast<float>(out);
  const float at = static_cast<float>(position);
  return args.half_pixel ? (at + 0.5f) * scale - (centre ? 0.5f : 0.0f) : at * scale;
}

// The two neighbours of a position and the weight of the second.
struct Neighbours {
  size_t first, second;
  float weight;
};

Neighbours Find(const ResizeArgs& args, uint32_t position, uint32_t in, uint32_t out) {
  const float at = Source(args, position, in, out, true);
  const float last = static_cast<float>(in - 1);
  const float first = std::clamp(std::floor(at), 0.0f, last);
  const float second = std::clamp(std::ceil(at), 0.0f, last);
  return {static_cast<size_t>(first), static_cast<size_t>(second), at - std::floor(at)};
}

void BilinearRow(const float* image, const ResizeArgs& args, uint32_t y, float* out) {
  const Image &in = args.images.in, &target = args.images.out;
  const Neighbours rows = Find(args, y, in.height, target.height);
  for (uint32_t x = 0; x < target.width; ++x) {
    const Neighbours columns = Find(args, x, in.width, target.width);
    const float* a = image + (rows.first * in.width + columns.first) * in.depth;
    const float* b = image + (rows.first * in.width + columns.second) * in.depth;
    const float* c = image + (rows.second * in.width + columns.first) * in.depth;
    const float* d = image + (rows.second * in.width + columns.second) * in.depth;
    for (uint32_t i = 0; i < in.depth; ++i, ++out) {
      const float top = a[i] * (1 - columns.weight) + b[i] * columns.weight;
      const float bottom = c[i] * (1 - columns.weight) + d[i] * columns.weight;
      *out = top * (1 - rows.weight) + bottom * rows.weight;
    }
  }
}

size_t Nearest(const ResizeArgs& args, uint32_t position, uint32_t in, uint32_t out) {
  const float at = Source(args, position, in, out, false);
  const float whole = args.align_corners ? std::round(at) : std::floor(at);
  return static_cast<size_t>(std::clamp(whole, 0.0f, static_cast<float>(in - 1)));
}

void NearestRow(const float* image, const ResizeArgs& args, uint32_t y, float* out) {
  const Image &in = args.images.in, &target = args.images.out;
  const size_t row = Nearest(args, y, in.height, target.height);
  for (uint32_t x = 0; x < target.width; ++x, out += in.depth) {
    const size_t column = Nearest(args, x, in.width, target.width);
    std::copy_n(image + (row * in.width + column) * in.depth, in.depth, out);
  }
}

using RowFunction = void (*)(const float*, const ResizeArgs&, uint32_t, float*);

std::function<void(Call&)> Execute(RowFunction row) {
  return [row](Call& call) {
    ResizeArgs args;
    (void)ReadArgs(call, &args);  // prepare has seen it succeed
    const Image &in = args.images.in, &out = args.images.out;
    const size_t image = static_cast<size_t>(in.height) * in.width * in.depth;
    const size_t line = static_cast<size_t>(out.width) * out.depth;
    WithNhwc(call, args.images, [&](const float* input, float* output) {
      ParallelFor(static_cast<size_t>(out.batch) * out.height, 4, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          row(input + i / out.height * image, args, static_cast<uint32_t>(i % out.height),
              output + i * line);
        }
      });
    });
  };
}

const Registrar kOps{
    {23, "RESIZE_BILINEAR", "F1 H3 Q3 S4",
     {{1, "Xii>X"}, {3, "Xss>X"}, {3, "Xiib>X"}, {3, "Xssb>X"}, {4, "Xiibbb>X"}, {4, "Xssbbb>X"}},
     Prepare, Execute(BilinearRow)},
    {94, "RESIZE_NEAREST_NEIGHBOR", "F3 H3 Q3 S4",
     {{3, "Xiib>X"}, {3, "Xssb>X"}, {4, "Xiibbb>X"}, {4, "Xssbbb>X"}}, Prepare,
     Execute(NearestRow)},
};

}  // namespace
}  // namespace nnsim::ops_resize
