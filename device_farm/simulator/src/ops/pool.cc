// AVERAGE_POOL_2D, L2_POOL_2D and MAX_POOL_2D.
#include <algorithm>
#include <cmath>

#include "op_registry.h"
#include "ops/conv.h"
#include "parallel.h"

namespace nnsim::ops_pool {
namespace {

enum class Pool { kAverage, kL2, kMax };

Status ReadArgs(Call& call, ConvArgs* args) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 4, 4));
  size_t next = 1;
  int32_t scheme = 0;
  NNSIM_RETURN_IF_ERROR(
      ReadWindow(call, call.input_count() >= 10, &next, &args->window, &scheme));
  args->window.w.filter = call.Int(next++);
  args->window.h.filter = call.Int(next++);
  args->activation = call.Int(next++);
  NNSIM_RETURN_IF_ERROR(CheckActivation(args->activation));
  if (next < call.input_count()) args->nchw = call.Bool(next);
  args->in = ReadImage(call.Shape(0), args->nchw);
  args->window.h.input = static_cast<int32_t>(args->in.height);
  args->window.w.input = static_cast<int32_t>(args->in.width);
  NNSIM_RETURN_IF_ERROR(ResolveWindow(scheme, &args->window));
  args->out = {args->in.batch, static_cast<uint32_t>(args->window.h.output),
               static_cast<uint32_t>(args->window.w.output), args->in.depth};
  return Ok();
}

Status Prepare(Call& call) {
  ConvArgs args;
  NNSIM_RETURN_IF_ERROR(ReadArgs(call, &args));
  NNSIM_RETURN_IF_ERROR(CheckSameQuantization(call));
  call.SetOut(0, ImageDims(args.out, args.nchw));
  call.SetMacs(static_cast<double>(call.Out().count()) * args.window.h.filter *
               args.window.w.filter);
  return Ok();
}

// The part of the window at `position` that lies inside of the input.
struct Span {
  int32_t begin, end;

  Span(const Axis& axis, size_t position) {
    const int32_t start = static_cast<int32_t>(position) * axis.stride - axis.before;
    begin = std::max(start, 0);
    end = std::min(start + axis.filter, axis.input);
  }
};

void Accumulate(Pool pool, const float* in, size_t depth, float* sums) {
  for (size_t c = 0; c < depth; ++c) {
    if (pool == Pool::kMax) {
      sums[c] = in[c] > sums[c] ? in[c] : sums[c];
    } else {
      sums[c] += pool == Pool::kL2 ? in[c] * in[c] : in[c];
    }
  }
}

void ComputePixel(Pool pool, const float* image, const ConvArgs& args, size_t y, size_t x,
                  float* out) {
  const Range range = FusedRange(args.activation);
  const size_t depth = args.in.depth;
  const Span rows(args.window.h, y), columns(args.window.w, x);
  std::fill_n(out, depth, pool == Pool::kMax ? std::numeric_limits<float>::lowest() : 0.0f);
  for (int32_t r = rows.begin; r < rows.end; ++r) {
    for (int32_t c = columns.begin; c < columns.end; ++c) {
      Accumulate(pool, image + (static_cast<size_t>(r) * args.in.width + c) * depth, depth, out);
    }
  }
  const float count = static_cast<float>(rows.end - rows.begin) *
                      static_cast<float>(columns.end - columns.begin);
  for (size_t c = 0; c < depth; ++c) {
    if (pool == Pool::kAverage) out[c] /= count;
    if (pool == Pool::kL2) out[c] = std::sqrt(out[c] / count);
    out[c] = range.Clamp(out[c]);
  }
}

std::function<void(Call&)> Execute(Pool pool) {
  return [pool](Call& call) {
    ConvArgs args;
    (void)ReadArgs(call, &args);  // prepare has seen it succeed
    const size_t depth = args.in.depth, width = args.out.width, height = args.out.height;
    const size_t image = static_cast<size_t>(args.in.height) * args.in.width * depth;
    WithNhwc(call, args, [&](const float* input, float* output) {
      ParallelFor(args.out.batch * height, 1, [&](size_t begin, size_t end) {
        for (size_t row = begin; row < end; ++row) {
          for (size_t x = 0; x < width; ++x) {
            ComputePixel(pool, input + row / height * image, args, row % height, x,
                         output + (row * width + x) * depth);
          }
        }
      });
    });
  };
}

const std::vector<Form> kForms = {
    {1, "Xiiiiii>X"}, {1, "Xiiiiiiiii>X"}, {3, "Xiiiiiib>X"}, {3, "Xiiiiiiiiib>X"}};

const Registrar kOps{
    {1, "AVERAGE_POOL_2D", kCommonTypes, kForms, Prepare, Execute(Pool::kAverage)},
    {12, "L2_POOL_2D", "F1 H3", kForms, Prepare, Execute(Pool::kL2)},
    {17, "MAX_POOL_2D", kCommonTypes, kForms, Prepare, Execute(Pool::kMax)},
};

}  // namespace
}  // namespace nnsim::ops_pool
