// CONV_2D and GROUPED_CONV_2D: im2col and matrix multiplication.
#include "ops/conv.h"

#include <algorithm>

#include "kernels.h"
#include "op_registry.h"
#include "parallel.h"

namespace nnsim::ops_conv {
namespace {

// Rows (output pixels) gathered and multiplied at once; a multiple of every tile height.
constexpr size_t kRows = 48;

Status ReadArgs(Call& call, bool grouped, ConvArgs* args) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 4, 4));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 1, 4, 4));
  const size_t extra = grouped ? 1 : 0;
  // Explicit padding has three operands more; the layout is BOOL where a stride would be INT32.
  const bool explicit_padding = call.input_count() >= 10 + extra &&
                                call.In(7 + extra).type == ANEURALNETWORKS_INT32;
  size_t next = 3;
  int32_t scheme = 0;
  NNSIM_RETURN_IF_ERROR(ReadWindow(call, explicit_padding, &next, &args->window, &scheme));
  if (grouped) args->factor = call.Int(next++);
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
               static_cast<uint32_t>(args->window.w.output), filter[0]};
  return Ok();
}

Status Prepare(Call& call, bool grouped) {
  ConvArgs args;
  NNSIM_RETURN_IF_ERROR(ReadArgs(call, grouped, &args));
  const Dims& filter = call.Shape(1);
  const uint32_t groups = static_cast<uint32_t>(args.factor);
  NNSIM_REQUIRE(args.factor > 0 && filter[0] % groups == 0,
                "output channels must be a multiple of the groups");
  NNSIM_REQUIRE(filter[3] * groups == args.in.depth,
                "the filter has " + std::to_string(filter[3]) + " input channels, the input " +
                    std::to_string(args.in.depth));
  NNSIM_RETURN_IF_ERROR(CheckFilter(call, filter[0], 0));
  call.SetOut(0, ImageDims(args.out, args.nchw));
  call.SetMacs(static_cast<double>(call.Out().count()) * filter[1] * filter[2] * filter[3]);
  return Ok();
}

// Copies the window of one output pixel, channels [first, first + depth), zeros outside.
void Gather(const float* input, const ConvArgs& args, size_t pixel, size_t first, size_t depth,
            float* row) {
  const Axis& h = args.window.h;
  const Axis& w = args.window.w;
  const size_t plane = static_cast<size_t>(h.output) * w.output;
  const size_t image = pixel / plane;
  const int32_t y0 = static_cast<int32_t>(pixel % plane / w.output) * h.stride - h.before;
  const int32_t x0 = static_cast<int32_t>(pixel % w.output) * w.stride - w.before;
  for (int32_t fy = 0; fy < h.filter; ++fy) {
    const int32_t y = y0 + fy * h.dilation;
    for (int32_t fx = 0; fx < w.filter; ++fx, row += depth) {
      const int32_t x = x0 + fx * w.dilation;
      if (y < 0 || y >= h.input || x < 0 || x >= w.input) {
        std::fill_n(row, depth, 0.0f);
      } else {
        const size_t position = (image * h.input + y) * w.input + x;
        std::copy_n(input + position * args.in.depth + first, depth, row);
      }
    }
  }
}

bool IsPointwise(const Window& window) {
  for (const Axis* axis : {&window.h, &window.w}) {
    if (axis->filter != 1 || axis->stride != 1 || axis->before != 0 || axis->after != 0) {
      return false;
    }
  }
  return true;
}

// Panels of all groups, one after the other; each group's are padded on their own.
const std::vector<float>& Panels(Call& call, size_t groups, size_t columns, size_t depth) {
  return call.Derived(1, "panels " + std::to_string(groups), [&] {
    const float* filter = call.Values(1);
    std::vector<float> all;
    for (size_t g = 0; g < groups; ++g) {
      const std::vector<float> part = PackPanels(filter + g * columns * depth, columns, depth);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  });
}

void Execute(Call& call, bool grouped) {
  ConvArgs args;
  (void)ReadArgs(call, grouped, &args);  // prepare has seen it succeed
  const Dims& filter = call.Shape(1);
  const size_t groups = static_cast<size_t>(args.factor), columns = filter[0] / groups;
  const size_t channels = filter[3], depth = filter[1] * filter[2] * channels;
  const std::vector<float>& panels = Panels(call, groups, columns, depth);
  const std::vector<float> bias = BiasValues(call);
  const Range range = FusedRange(args.activation);
  const size_t pixels = static_cast<size_t>(args.out.batch) * args.out.height * args.out.width;
  const bool direct = IsPointwise(args.window) && groups == 1;
  WithNhwc(call, args, [&](const float* input, float* output) {
    ParallelFor((pixels + kRows - 1) / kRows, 1, [&](size_t begin, size_t end) {
      std::vector<float> rows(direct ? 0 : kRows * depth);
      for (size_t block = begin; block < end; ++block) {
        const size_t first = block * kRows, count = std::min(kRows, pixels - first);
        for (size_t g = 0; g < groups; ++g) {
          for (size_t r = 0; r < count && !direct; ++r) {
            Gather(input, args, first + r, g * channels, channels, rows.data() + r * depth);
          }
          Gemm({direct ? input + first * depth : rows.data(), depth,
                panels.data() + g * (panels.size() / groups), bias.data() + g * columns,
                output + first * filter[0] + g * columns, filter[0], count, columns, depth,
                range.low, range.high});
        }
      }
    });
  });
}

const Registrar kOps{
    {3, "CONV_2D", kCommonTypes,
     {{1, "Xwziiii>X"}, {1, "Xwziiiiiii>X"}, {3, "Xwziiiib>X"}, {3, "Xwziiiiiiib>X"},
      {3, "Xwziiiibii>X"}, {3, "Xwziiiiiiibii>X"}},
     [](Call& call) { return Prepare(call, false); }, [](Call& call) { Execute(call, false); }},
    {55, "GROUPED_CONV_2D", "F3 H3 Q3 S4",
     {{3, "Xwziiiiib>X"}, {3, "Xwziiiiiiiib>X"}},
     [](Call& call) { return Prepare(call, true); }, [](Call& call) { Execute(call, true); }},
};

}  // namespace
}  // namespace nnsim::ops_conv
