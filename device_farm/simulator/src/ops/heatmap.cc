// HEATMAP_MAX_KEYPOINT: the peak of each heat map, refined to a fraction of a pixel.
#include <algorithm>
#include <cmath>

#include "op_registry.h"
#include "ops/conv.h"

namespace nnsim::ops_heatmap {
namespace {

Status Prepare(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 4, 4));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 1, 2, 2));
  const Image maps = ReadImage(call.Shape(0), call.Bool(2));
  NNSIM_REQUIRE(maps.height == maps.width && maps.width >= 2, "heat maps are squares of 2 or more");
  NNSIM_REQUIRE(call.Shape(1) == (Dims{maps.batch, 4}), "one box a heat map is needed");
  call.SetOut(0, {maps.batch, maps.depth});
  call.SetOut(1, {maps.batch, maps.depth, 2});
  return Ok();
}

struct Peak {
  float x, y, score;
};

// One keypoint's heat map: `size` squared values, `step` elements apart.
struct Map {
  const float* values;
  int32_t size;
  size_t step;

  float At(int32_t y, int32_t x) const {
    const auto mirror = [this](int32_t i) { return i < 0 ? 1 : (i >= size ? size - 2 : i); };
    return values[static_cast<size_t>(mirror(y) * size + mirror(x)) * step];
  }
};

// The maximum of the parabola through the 3 x 3 neighbourhood of the peak.
Peak Refine(const Map& map, int32_t y, int32_t x) {
  const float centre = map.At(y, x);
  const float dx = (map.At(y, x + 1) - map.At(y, x - 1)) / 2;
  const float dy = (map.At(y + 1, x) - map.At(y - 1, x)) / 2;
  const float dxx = map.At(y, x + 1) + map.At(y, x - 1) - 2 * centre;
  const float dyy = map.At(y + 1, x) + map.At(y - 1, x) - 2 * centre;
  const float dxy = (map.At(y + 1, x + 1) - map.At(y + 1, x - 1) - map.At(y - 1, x + 1) +
                     map.At(y - 1, x - 1)) /
                    4;
  const float determinant = dxx * dyy - dxy * dxy;
  if (std::fabs(determinant) < 1e-5f) return {0, 0, centre};
  float step_x = (dxy * dy - dyy * dx) / determinant;
  float step_y = (dxy * dx - dxx * dy) / determinant;
  // A step that leaves the neighbourhood is shortened to its edge.
  const float longer = std::max(std::fabs(step_x), std::fabs(step_y));
  if (longer > 1.5f) {
    step_x *= 1.5f / longer;
    step_y *= 1.5f / longer;
  }
  const float score = centre + dx * step_x + dy * step_y +
                      (dxx * step_x * step_x + dyy * step_y * step_y) / 2 + dxy * step_x * step_y;
  return {step_x, step_y, score};
}

void Execute(Call& call) {
  const bool nchw = call.Bool(2);
  const Image maps = ReadImage(call.Shape(0), nchw);
  const int32_t size = static_cast<int32_t>(maps.height);
  std::vector<float> values(call.Values(0), call.Values(0) + call.In(0).count());
  if (nchw) values = ToNhwc(values.data(), maps);
  const float* boxes = call.Values(1);
  float *scores = call.Results(0), *points = call.Results(1);
  const size_t plane = static_cast<size_t>(size) * size;
  for (size_t i = 0; i < static_cast<size_t>(maps.batch) * maps.depth; ++i) {
    const size_t n = i / maps.depth;
    const Map map{values.data() + n * plane * maps.depth + i % maps.depth, size, maps.depth};
    int32_t best = 0;
    for (int32_t p = 1; p < size * size; ++p) {
      if (map.At(p / size, p % size) > map.At(best / size, best % size)) best = p;
    }
    const Peak peak = Refine(map, best / size, best % size);
    const float* box = boxes + 4 * n;
    const float w = (box[2] - box[0]) / static_cast<float>(size);
    const float h = (box[3] - box[1]) / static_cast<float>(size);
    scores[i] = peak.score;
    points[2 * i] = box[0] + w * (static_cast<float>(best % size) + 0.5f + peak.x);
    points[2 * i + 1] = box[1] + h * (static_cast<float>(best / size) + 0.5f + peak.y);
  }
}

const Registrar kOps{
    {56, "HEATMAP_MAX_KEYPOINT", "F3 H3", {{3, "XXb>XX"}, {3, "QUb>QU"}, {4, "SUb>SU"}}, Prepare,
     Execute},
};

}  // namespace
}  // namespace nnsim::ops_heatmap
