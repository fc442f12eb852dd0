// What the convolutions share: arguments, bias and image layout.
#ifndef DEVICE_FARM_SIMULATOR_SRC_OPS_CONV_H_
#define DEVICE_FARM_SIMULATOR_SRC_OPS_CONV_H_

#include <functional>
#include <string>
#include <vector>

#include "call.h"
#include "ops/rules.h"
#include "ops/window.h"

namespace nnsim {

struct ConvArgs {
  Window window;
  Image in, out;
  int32_t factor = 1;  // groups, or the depth multiplier
  int32_t activation = 0;
  bool nchw = false;
};

// Checks what holds for every convolution: ranks, bias length, scales of bias and channels.
// `channels`: output channels; `channel_dim`: where the filter has them.
Status CheckFilter(Call& call, uint32_t channels, uint32_t channel_dim);

// Bias as real numbers; per-channel filters give it a scale a channel.
std::vector<float> BiasValues(Call& call);

// Runs compute(input, output), both NHWC, converting when the operands are NCHW.
void WithNhwc(Call& call, const ConvArgs& args,
              const std::function<void(const float*, float*)>& compute);

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_OPS_CONV_H_
