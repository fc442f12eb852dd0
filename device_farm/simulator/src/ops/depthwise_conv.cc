// DEPTHWISE_CONV_2D: every input channel has filters of its own.
#include <algorithm>

#include "kernels.h"
#include "op_registry.h"
#include "ops/conv.h"
#include "parallel.h"

namespace nnsim::ops_depthwise_conv {
namespace {

Status ReadArgs(Call& call, ConvArgs* args) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 4, 4));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 1, 4, 4));
  const bool explicit_padding =
      call.input_count() >= 11 && call.In(8).type == ANEURALNETWORKS_INT32;
  size_t next = 3;
  int32_t scheme = 0;
  NNSIM_RETURN_IF_ERROR(ReadWindow(call, explicit_padding, &next, &args->window, &scheme));
  args->factor = call.Int(next++);
  args->activation = call.Int(next++);
  NNSIM_RETURN_IF_ERROR(CheckActivation(args->activation));
  if (next < call.input_count()) args->nchw = call.Bool(next++);
  if (next < call.input_count()) {
    args->window.w.dilation = call.Int(next++);
    args->window.h.dilation = call.Int(next++);
  }
  const Dims& filter = call.Shape(1);
  args->in = ReadImage(call.Shape(0), args->nchw);
  args->window.h.input = static_cast<int32_t>(args->in.height);
  args->window.w.input = static_cast<int32_t>(args->in.width);
  args->window.h.filter = static_cast<int32_t>(filter[1]);
  args->window.w.filter = static_cast<int32_t>(filter[2]);
  NNSIM_RETURN_IF_ERROR(ResolveWindow(scheme, &args->window));
  args->out = {args->in.batch, static_cast<uint32_t>(args->window.h.output),
               static_cast<uint32_t>(args->window.w.output), filter[3]};
  return Ok();
}

Status Prepare(Call& call) {
  ConvArgs args;
  NNSIM_RETURN_IF_ERROR(ReadArgs(call, &args));
  const Dims& filter = call.Shape(1);
  NNSIM_REQUIRE(filter[0] == 1, "the filter's first dimension must be 1");
  NNSIM_REQUIRE(args.factor > 0 &&
                    filter[3] == args.in.depth * static_cast<uint32_t>(args.factor),
                "output channels must be input channels times the multiplier");
  NNSIM_RETURN_IF_ERROR(CheckFilter(call, filter[3], 3));
  call.SetOut(0, ImageDims(args.out, args.nchw));
  call.SetMacs(static_cast<double>(call.Out().count()) * filter[1] * filter[2]);
  return Ok();
}

// Adds one filter tap to the sums of one output pixel.
void AddTap(const float* in, const float* filter, const ConvArgs& args, float* sums) {
  if (args.factor == 1) return MultiplyAdd(in, filter, sums, args.in.depth);
  const size_t multiplier = static_cast<size_t>(args.factor);
  for (size_t c = 0; c < args.in.depth; ++c) {
    for (size_t m = 0; m < multiplier; ++m) {
      sums[c * multiplier + m] += in[c] * filter[c * multiplier + m];
    }
  }
}

void ComputePixel(const float* input, const float* filter, const ConvArgs& args, size_t pixel,
                  float* sums) {
  const Axis& h = args.window.h;
  const Axis& w = args.window.w;
  const size_t plane = static_cast<size_t>(h.output) * w.output;
  const size_t image = pixel / plane;
  const int32_t y0 = static_cast<int32_t>(pixel % plane / w.output) * h.stride - h.before;
  const int32_t x0 = static_cast<int32_t>(pixel % w.output) * w.stride - w.before;
  for (int32_t fy = 0; fy < h.filter; ++fy) {
    const int32_t y = y0 + fy * h.dilation;
    if (y < 0 || y >= h.input) continue;
    for (int32_t fx = 0; fx < w.filter; ++fx) {
      const int32_t x = x0 + fx * w.dilation;
      if (x < 0 || x >= w.input) continue;
      const size_t position = (image * h.input + y) * w.input + x;
      const size_t tap = static_cast<size_t>(fy) * w.filter + fx;
      AddTap(input + position * args.in.depth, filter + tap * args.out.depth, args, sums);
    }
  }
}

void Execute(Call& call) {
  ConvArgs args;
  (void)ReadArgs(call, &args);  // prepare has seen it succeed
  const float* filter = call.Values(1);
  const std::vector<float> bias = BiasValues(call);
  const Range range = FusedRange(args.activation);
  const size_t pixels = static_cast<size_t>(args.out.batch) * args.out.height * args.out.width;
  const size_t channels = args.out.depth;
  WithNhwc(call, args, [&](const float* input, float* output) {
    ParallelFor(pixels, 16, [&](size_t begin, size_t end) {
      for (size_t pixel = begin; pixel < end; ++pixel) {
        float* sums = output + pixel * channels;
        std::copy(bias.begin(), bias.end(), sums);
        ComputePixel(input, filter, args, pixel, sums);
        for (size_t c = 0; c < channels; ++c) sums[c] = range.Clamp(sums[c]);
      }
    });
  });
}

const Registrar kOps{
    {4, "DEPTHWISE_CONV_2D", kCommonTypes,
     {{1, "Xwziiiii>X"}, {1, "Xwziiiiiiii>X"}, {3, "Xwziiiiib>X"}, {3, "Xwziiiiiiiib>X"},
      {3, "Xwziiiiibii>X"}, {3, "Xwziiiiiiiibii>X"}},
     Prepare, Execute},
};

}  // namespace
}  // namespace nnsim::ops_depthwise_conv
