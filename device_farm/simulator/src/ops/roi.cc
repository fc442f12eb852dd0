// ROI_ALIGN and ROI_POOLING: a fixed number of bins from each region of interest.
#include <algorithm>
#include <cmath>

#include "op_registry.h"
#include "ops/conv.h"
#include "parallel.h"

namespace nnsim::ops_roi {
namespace {

struct RoiArgs {
  bool nchw = false;
  Image in{}, out{};
  float stride_h = 1, stride_w = 1;
  int32_t samples_h = 0, samples_w = 0;  // 0: chosen from the size of the region
};

Status ReadArgs(Call& call, RoiArgs* args) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 4, 4));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 1, 2, 2));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 2, 1, 1));
  const bool align = call.input_count() == 10;
  args->nchw = call.Bool(align ? 9 : 7);
  args->in = ReadImage(call.Shape(0), args->nchw);
  args->stride_h = call.Real(5);
  args->stride_w = call.Real(6);
  if (align) {
    args->samples_h = call.Int(7);
    args->samples_w = call.Int(8);
  }
  const int32_t height = call.Int(3), width = call.Int(4);
  NNSIM_REQUIRE(height > 0 && width > 0, "the output size must be above 0");
  NNSIM_REQUIRE(args->stride_h > 0 && args->stride_w > 0, "the strides must be above 0");
  NNSIM_REQUIRE(args->samples_h >= 0 && args->samples_w >= 0, "samples must not be negative");
  args->out = {call.Shape(1)[0], static_cast<uint32_t>(height), static_cast<uint32_t>(width),
               args->in.depth};
  return Ok();
}

Status CheckRegions(Call& call, uint32_t batches) {
  if (call.In(1).data == nullptr || call.In(2).data == nullptr) return Ok();
  const std::vector<int32_t> batch = call.Ints(2);
  std::vector<float> rois(call.In(1).count());
  ToFloats(call.In(1), rois.size(), rois.data());
  for (size_t i = 0; i < batch.size(); ++i) {
    const float* roi = rois.data() + 4 * i;
    NNSIM_REQUIRE(batch[i] >= 0 && static_cast<uint32_t>(batch[i]) < batches,
                  "a region names a batch that does not exist");
    NNSIM_REQUIRE(roi[0] <= roi[2] && roi[1] <= roi[3], "a region ends before it begins");
  }
  return Ok();
}

Status Prepare(Call& call) {
  RoiArgs args;
  NNSIM_RETURN_IF_ERROR(ReadArgs(call, &args));
  NNSIM_REQUIRE(call.Shape(1)[1] == 4 && call.Shape(1)[0] == call.Shape(2)[0],
                "every region needs four coordinates and a batch");
  NNSIM_RETURN_IF_ERROR(CheckRegions(call, args.in.batch));
  call.SetOut(0, ImageDims(args.out, args.nchw));
  return Ok();
}

// Adds the bilinear value at (y, x) to `sums`; points outside of the image add nothing.
void AddSample(const float* image, const Image& in, float y, float x, float* sums) {
  const float last_y = static_cast<float>(in.height) - 1, last_x = static_cast<float>(in.width) - 1;
  if (y < -1 || x < -1 || y > last_y + 1 || x > last_x + 1) return;
  y = std::clamp(y, 0.0f, last_y);
  x = std::clamp(x, 0.0f, last_x);
  const size_t y0 = static_cast<size_t>(y), x0 = static_cast<size_t>(x);
  const size_t y1 = std::min<size_t>(y0 + 1, in.height - 1);
  const size_t x1 = std::min<size_t>(x0 + 1, in.width - 1);
  const float dy = y - static_cast<float>(y0), dx = x - static_cast<float>(x0);
  const float* a = image + (y0 * in.width + x0) * in.depth;
  const float* b = image + (y0 * in.width + x1) * in.depth;
  const float* c = image + (y1 * in.width + x0) * in.depth;
  const float* d = image + (y1 * in.width + x1) * in.depth;
  for (size_t i = 0; i < in.depth; ++i) {
    sums[i] += (a[i] * (1 - dx) + b[i] * dx) * (1 - dy) + (c[i] * (1 - dx) + d[i] * dx) * dy;
  }
}

// One direction of a region: where bin `i` starts and how it is sampled.
struct Bins {
  float start, size;
  int32_t samples;

  Bins(float low, float high, float stride, uint32_t count, int32_t wanted) {
    start = low / stride;
    size = std::max((high - low) / stride, 1.0f) / static_cast<float>(count);
    samples = wanted > 0 ? wanted : static_cast<int32_t>(std::ceil(size));
  }
  float At(uint32_t bin, int32_t sample) const {
    return start + size * (static_cast<float>(bin) +
                           (static_cast<float>(sample) + 0.5f) / static_cast<float>(samples));
  }
};

void AlignRegion(const float* image, const RoiArgs& args, const float* roi, float* out) {
  const Bins h(roi[1], roi[3], args.stride_h, args.out.height, args.samples_h);
  const Bins w(roi[0], roi[2], args.stride_w, args.out.width, args.samples_w);
  const float samples = static_cast<float>(h.samples) * static_cast<float>(w.samples);
  for (uint32_t y = 0; y < args.out.height; ++y) {
    for (uint32_t x = 0; x < args.out.width; ++x, out += args.in.depth) {
      std::fill_n(out, args.in.depth, 0.0f);
      for (int32_t i = 0; i < h.samples; ++i) {
        for (int32_t j = 0; j < w.samples; ++j) {
          AddSample(image, args.in, h.At(y, i), w.At(x, j), out);
        }
      }
      for (size_t c = 0; c < args.in.depth; ++c) out[c] /= samples;
    }
  }
}

// The pixels [begin, end) of bin `bin` along one direction.
struct Pixels {
  int32_t begin, end;

  Pixels(float low, float high, float stride, uint32_t bin, uint32_t count, uint32_t length) {
    const int32_t first = static_cast<int32_t>(std::round(low / stride));
    const int32_t last = static_cast<int32_t>(std::round(high / stride));
    const float pixels = static_cast<float>(std::max(last - first + 1, 1));
    const float size = pixels / static_cast<float>(count);
    const int32_t limit = static_cast<int32_t>(length);
    const auto at = [&](float edge) {
      return std::clamp(static_cast<int32_t>(edge) + first, 0, limit);
    };
    begin = at(std::floor(size * static_cast<float>(bin)));
    end = at(std::ceil(size * static_cast<float>(bin + 1)));
  }
};

void PoolRegion(const float* image, const RoiArgs& args, const float* roi, float* out) {
  const Image& in = args.in;
  for (uint32_t y = 0; y < args.out.height; ++y) {
    const Pixels rows(roi[1], roi[3], args.stride_h, y, args.out.height, in.height);
    for (uint32_t x = 0; x < args.out.width; ++x, out += in.depth) {
      const Pixels columns(roi[0], roi[2], args.stride_w, x, args.out.width, in.width);
      const bool empty = rows.end <= rows.begin || columns.end <= columns.begin;
      std::fill_n(out, in.depth, empty ? 0.0f : std::numeric_limits<float>::lowest());
      for (int32_t r = rows.begin; r < rows.end; ++r) {
        for (int32_t c = columns.begin; c < columns.end; ++c) {
          const float* pixel = image + (static_cast<size_t>(r) * in.width + c) * in.depth;
          for (size_t i = 0; i < in.depth; ++i) out[i] = std::max(out[i], pixel[i]);
        }
      }
    }
  }
}

using RegionFunction = void (*)(const float*, const RoiArgs&, const float*, float*);

std::function<void(Call&)> Execute(RegionFunction region) {
  return [region](Call& call) {
    RoiArgs args;
    (void)ReadArgs(call, &args);  // prepare has seen it succeed
    ConvArgs images;
    images.nchw = args.nchw;
    images.in = args.in;
    images.out = args.out;
    const float* rois = call.Values(1);
    const std::vector<int32_t> batch = call.Ints(2);
    const size_t image = static_cast<size_t>(args.in.height) * args.in.width * args.in.depth;
    const size_t bins = static_cast<size_t>(args.out.height) * args.out.width * args.in.depth;
    WithNhwc(call, images, [&](const float* input, float* output) {
      ParallelFor(batch.size(), 1, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          region(input + static_cast<size_t>(batch[i]) * image, args, rois + 4 * i,
                 output + i * bins);
        }
      });
    });
  };
}

const Registrar kOps{
    {81, "ROI_ALIGN", "F3 H3 Q3 S4",
     {{3, "FFIiiffiib>F"}, {3, "HHIiihhiib>H"}, {3, "QUIiiffiib>Q"}, {4, "SUIiiffiib>S"}}, Prepare,
     Execute(AlignRegion)},
    {82, "ROI_POOLING", "F3 H3 Q3 S4",
     {{3, "FFIiiffb>F"}, {3, "HHIiihhb>H"}, {3, "QUIiiffb>Q"}, {4, "SUIiiffb>S"}}, Prepare,
     Execute(PoolRegion)},
};

}  // namespace
}  // namespace nnsim::ops_roi
