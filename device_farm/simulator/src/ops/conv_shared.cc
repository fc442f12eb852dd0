#include <cmath>

#include "ops/conv.h"

namespace nnsim {
namespace {

// Scales are products of two floats: compared with some slack for how the caller rounded.
bool Close(float a, float b) { return std::fabs(a - b) <= 1e-5f * std::fmax(a, b); }

}  // namespace

Status CheckFilter(Call& call, uint32_t channels, uint32_t channel_dim) {
  const Tensor& filter = call.In(1);
  const Tensor& bias = call.In(2);
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 4, 4));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 1, 4, 4));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 2, 1, 1));
  NNSIM_REQUIRE(bias.dims[0] == channels, "the bias needs one value an output channel");
  if (!IsQuantized(filter.type)) return Ok();
  NNSIM_REQUIRE(bias.zero_point == 0, "the bias takes no zero point");
  if (filter.type == ANEURALNETWORKS_TENSOR_QUANT8_SYMM_PER_CHANNEL) {
    NNSIM_REQUIRE(filter.channel_dim == channel_dim, "the filter's channelDim is wrong");
    NNSIM_REQUIRE(bias.scale == 0, "the bias of a per-channel filter has scale 0");
    return Ok();
  }
  const float product = call.In(0).scale * filter.scale;
  NNSIM_REQUIRE(Close(bias.scale, product),
                "the bias' scale is not the product of input and filter scale");
  if (!(call.Out().scale > product)) call.Need(3);
  return Ok();
}

std::vector<float> BiasValues(Call& call) {
  const Tensor& filter = call.In(1);
  const size_t channels = call.Shape(2)[0];
  if (filter.type != ANEURALNETWORKS_TENSOR_QUANT8_SYMM_PER_CHANNEL) {
    const float* values = call.Values(2);
    return std::vector<float>(values, values + channels);
  }
  std::vector<float> bias(channels);
  for (size_t c = 0; c < channels; ++c) {
    bias[c] = static_cast<float>(call.Data<int32_t>(2)[c]) * call.In(0).scale *
              filter.channel_scales[c];
  }
  return bias;
}

void WithNhwc(Call& call, const ConvArgs& args,
              const std::function<void(const float*, float*)>& compute) {
  if (!args.nchw) return compute(call.Values(0), call.Results());
  const std::vector<float> input = ToNhwc(call.Values(0), args.in);
  std::vector<float> output(call.Out().count());
  compute(input.data(), output.data());
  FromNhwc(output.data(), args.out, call.Results());
}

}  // namespace nnsim
