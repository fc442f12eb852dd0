#include "ops/window.h"

#include <algorithm>

namespace nnsim {
namespace {

Status ResolveAxis(int32_t scheme, Axis* axis) {
  NNSIM_REQUIRE(axis->stride > 0 && axis->dilation > 0, "strides and dilations must be above 0");
  NNSIM_REQUIRE(axis->before >= 0 && axis->after >= 0, "paddings must not be negative");
  NNSIM_REQUIRE(axis->filter > 0, "the filter is empty");
  if (scheme == ANEURALNETWORKS_PADDING_SAME) {
    const int32_t output = (axis->input + axis->stride - 1) / axis->stride;
    const int32_t total =
        std::max(0, (output - 1) * axis->stride + axis->Extent() - axis->input);
    axis->before = total / 2;
    axis->after = total - axis->before;
  }
  const int64_t span = static_cast<int64_t>(axis->input) + axis->before + axis->after;
  NNSIM_REQUIRE(span >= axis->Extent(), "the filter is larger than the padded input");
  axis->output = static_cast<int32_t>((span - axis->Extent()) / axis->stride + 1);
  return Ok();
}

}  // namespace

Status ReadWindow(Call& call, bool explicit_padding, size_t* next, Window* window,
                  int32_t* scheme) {
  size_t i = *next;
  *scheme = 0;
  if (explicit_padding) {
    window->w.before = call.Int(i++);
    window->w.after = call.Int(i++);
    window->h.before = call.Int(i++);
    window->h.after = call.Int(i++);
  } else {
    *scheme = call.Int(i++);
    NNSIM_REQUIRE(*scheme == ANEURALNETWORKS_PADDING_SAME ||
                      *scheme == ANEURALNETWORKS_PADDING_VALID,
                  "no such padding scheme");
  }
  window->w.stride = call.Int(i++);
  window->h.stride = call.Int(i++);
  *next = i;
  return Ok();
}

Status ResolveWindow(int32_t scheme, Window* window) {
  NNSIM_RETURN_IF_ERROR(ResolveAxis(scheme, &window->h));
  return ResolveAxis(scheme, &window->w);
}

Image ReadImage(const Dims& dims, bool nchw) {
  if (nchw) return {dims[0], dims[2], dims[3], dims[1]};
  return {dims[0], dims[1], dims[2], dims[3]};
}

Dims ImageDims(const Image& image, bool nchw) {
  if (nchw) return {image.batch, image.depth, image.height, image.width};
  return {image.batch, image.height, image.width, image.depth};
}

std::vector<float> ToNhwc(const float* values, const Image& image) {
  const size_t plane = static_cast<size_t>(image.height) * image.width;
  std::vector<float> out(image.batch * plane * image.depth);
  for (size_t n = 0; n < image.batch; ++n) {
    for (size_t c = 0; c < image.depth; ++c) {
      const float* in = values + (n * image.depth + c) * plane;
      for (size_t p = 0; p < plane; ++p) out[(n * plane + p) * image.depth + c] = in[p];
    }
  }
  return out;
}

void FromNhwc(const float* values, const Image& image, float* out) {
  const size_t plane = static_cast<size_t>(image.height) * image.width;
  for (size_t n = 0; n < image.batch; ++n) {
    for (size_t c = 0; c < image.depth; ++c) {
      float* to = out + (n * image.depth + c) * plane;
      for (size_t p = 0; p < plane; ++p) to[p] = values[(n * plane + p) * image.depth + c];
    }
  }
}

}  // namespace nnsim
