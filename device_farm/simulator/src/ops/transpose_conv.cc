// TRANSPOSE_CONV_2D: every input pixel adds a scaled filter to the output.
#include <algorithm>

#include "kernels.h"
#include "op_registry.h"
#include "ops/conv.h"
#include "parallel.h"

namespace nnsim::ops_transpose_conv {
namespace {

// The window seen from the gradient: "input" and "output" are those of the operation.
Status ResolveTransposed(int32_t scheme, Axis* axis) {
  NNSIM_REQUIRE(axis->stride > 0, "strides must be above 0");
  NNSIM_REQUIRE(axis->before >= 0 && axis->after >= 0, "paddings must not be negative");
  const int32_t whole = (axis->input - 1) * axis->stride + axis->filter;
  if (scheme == 0) {
    axis->output = whole - axis->before - axis->after;
  } else if (scheme == ANEURALNETWORKS_PADDING_SAME) {
    axis->before = std::max(0, whole - axis->output) / 2;
  }
  NNSIM_REQUIRE(axis->output > 0, "the output would be empty");
  return Ok();
}

Status ReadOutputShape(Call& call, ConvArgs* args) {
  const std::vector<int32_t> shape = call.Ints(3);
  NNSIM_REQUIRE(shape.size() == 4, "the output shape needs four numbers");
  args->window.h.output = shape[args->nchw ? 2 : 1];
  args->window.w.output = shape[args->nchw ? 3 : 2];
  return Ok();
}

Status ReadArgs(Call& call, ConvArgs* args) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 4, 4));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 1, 4, 4));
  const bool explicit_padding = call.input_count() == 11;
  size_t next = explicit_padding ? 3 : 4;
  int32_t scheme = 0;
  NNSIM_RETURN_IF_ERROR(ReadWindow(call, explicit_padding, &next, &args->window, &scheme));
  args->activation = call.Int(next++);
  NNSIM_RETURN_IF_ERROR(CheckActivation(args->activation));
  args->nchw = call.Bool(next);
  if (!explicit_padding) NNSIM_RETURN_IF_ERROR(ReadOutputShape(call, args));
  const Dims& filter = call.Shape(1);
  args->in = ReadImage(call.Shape(0), args->nchw);
  args->window.h.input = static_cast<int32_t>(args->in.height);
  args->window.w.input = static_cast<int32_t>(args->in.width);
  args->window.h.filter = static_cast<int32_t>(filter[1]);
  args->window.w.filter = static_cast<int32_t>(filter[2]);
  NNSIM_RETURN_IF_ERROR(ResolveTransposed(scheme, &args->window.h));
  NNSIM_RETURN_IF_ERROR(ResolveTransposed(scheme, &args->window.w));
  args->out = {args->in.batch, static_cast<uint32_t>(args->window.h.output),
               static_cast<uint32_t>(args->window.w.output), filter[0]};
  return Ok();
}

Status Prepare(Call& call) {
  ConvArgs args;
  NNSIM_RETURN_IF_ERROR(ReadArgs(call, &args));
  const Dims& filter = call.Shape(1);
  NNSIM_REQUIRE(filter[3] == args.in.depth, "filter and input have different depths");
  NNSIM_RETURN_IF_ERROR(CheckFilter(call, filter[0], 0));
  call.SetOut(0, ImageDims(args.out, args.nchw));
  call.SetMacs(static_cast<double>(call.In(0).count()) * filter[0] * filter[1] * filter[2]);
  return Ok();
}

// What one input pixel adds to the output: `taps` are its products with all filters, in the order
// [output channel, filter y, filter x].
void Scatter(const float* taps, const ConvArgs& args, size_t pixel, float* output) {
  const Axis& h = args.window.h;
  const Axis& w = args.window.w;
  const size_t plane = static_cast<size_t>(h.input) * w.input;
  const size_t image = pixel / plane, channels = args.out.depth;
  const int32_t y0 = static_cast<int32_t>(pixel % plane / w.input) * h.stride - h.before;
  const int32_t x0 = static_cast<int32_t>(pixel % w.input) * w.stride - w.before;
  const size_t window = static_cast<size_t>(h.filter) * w.filter;
  for (int32_t fy = 0; fy < h.filter; ++fy) {
    const int32_t y = y0 + fy;
    if (y < 0 || y >= h.output) continue;
    for (int32_t fx = 0; fx < w.filter; ++fx) {
      const int32_t x = x0 + fx;
      if (x < 0 || x >= w.output) continue;
      float* out = output + ((image * h.output + y) * w.output + x) * channels;
      const float* tap = taps + static_cast<size_t>(fy) * w.filter + fx;
      for (size_t c = 0; c < channels; ++c) out[c] += tap[c * window];
    }
  }
}

void Execute(Call& call) {
  ConvArgs args;
  (void)ReadArgs(call, &args);  // prepare has seen it succeed
  const Dims& filter = call.Shape(1);
  const size_t depth = filter[3], taps = filter[0] * filter[1] * filter[2];
  const std::vector<float>& panels = call.Derived(
      1, "panels", [&] { return PackPanels(call.Values(1), taps, depth); });
  const std::vector<float> bias = BiasValues(call), zeros(taps, 0.0f);
  const Range range = FusedRange(args.activation), all;
  const size_t plane = static_cast<size_t>(args.in.height) * args.in.width;
  const size_t out_size = static_cast<size_t>(args.out.height) * args.out.width * filter[0];
  WithNhwc(call, args, [&](const float* input, float* output) {
    // One image a thread: pixels of one image overlap in the output.
    ParallelFor(args.in.batch, 1, [&](size_t begin, size_t end) {
      std::vector<float> products(taps);
      for (size_t i = begin * out_size; i < end * out_size; ++i) output[i] = bias[i % filter[0]];
      for (size_t pixel = begin * plane; pixel < end * plane; ++pixel) {
        Gemm({input + pixel * depth, depth, panels.data(), zeros.data(), products.data(), taps, 1,
              taps, depth, all.low, all.high});
        Scatter(products.data(), args, pixel, output);
      }
      for (size_t i = begin * out_size; i < end * out_size; ++i) output[i] = range.Clamp(output[i]);
    });
  });
}

const Registrar kOps{
    {91, "TRANSPOSE_CONV_2D", "F3 H3 Q3 S4", {{3, "XwzIiiiib>X"}, {3, "Xwziiiiiiib>X"}}, Prepare,
     Execute},
};

}  // namespace
}  // namespace nnsim::ops_transpose_conv
