// Sliding windows: padding, strides and output sizes of convolutions and pooling.
#ifndef DEVICE_FARM_SIMULATOR_SRC_OPS_WINDOW_H_
#define DEVICE_FARM_SIMULATOR_SRC_OPS_WINDOW_H_

#include <vector>

#include "call.h"

namespace nnsim {

// One direction of a window, in elements.
struct Axis {
  int32_t input = 0, filter = 1, output = 0;
  int32_t stride = 1, dilation = 1;
  int32_t before = 0, after = 0;  // padding

  int32_t Extent() const { return (filter - 1) * dilation + 1; }
};

struct Window {
  Axis h, w;
};

// Reads padding and strides: pad left, right, top, bottom when `explicit_padding`, else a scheme;
// then stride width and height. `next` is the first operand and ends after the last one read.
Status ReadWindow(Call& call, bool explicit_padding, size_t* next, Window* window, int32_t* scheme);
// Applies the scheme, if any (0: none), and computes the output sizes.
Status ResolveWindow(int32_t scheme, Window* window);

// The sizes of a 4-D image operand.
struct Image {
  uint32_t batch, height, width, depth;
};

Image ReadImage(const Dims& dims, bool nchw);
Dims ImageDims(const Image& image, bool nchw);

// `values` of shape [n, c, h, w] in the order [n, h, w, c], and back.
std::vector<float> ToNhwc(const float* values, const Image& image);
void FromNhwc(const float* values, const Image& image, float* out);

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_OPS_WINDOW_H_
