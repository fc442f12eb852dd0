// Which NNAPI devices a model is compiled for.
#ifndef NNFARM_PLAYER_DEVICE_CHOICE_H_
#define NNFARM_PLAYER_DEVICE_CHOICE_H_

#include <string>
#include <vector>

#include "player/encoded_model.h"
#include "player/nnapi.h"

namespace nnfarm {

// A device of the choice and how many of the model's operations it takes.
struct ChosenDevice {
  nnapi::DeviceInfo info;
  int64_t supported_operations;
};

// Asks the devices that `wanted` leaves for the model's vendor extensions; each needs one that has
// it. Throws NnapiError (nnapi.extension_unsupported, nnapi.compile_failed).
void RequireExtensions(const nnapi::Api& api, const EncodedModel& encoded,
                       const std::string& wanted);

// With `wanted` (NAME, type:TYPE or not:NAME) only devices that match. Of these every device that
// takes an operation, and NNAPI's CPU reference only when the others leave operations out, so that
// the choice is evidence of what computed. Empty below level 3: NNAPI chooses itself there and does not tell.
// Throws NnapiError (nnapi.compile_failed).
std::vector<ChosenDevice> ChooseDevices(const nnapi::Api& api, const nnapi::Model* model,
                                        const EncodedModel& encoded, const std::string& wanted);

}  // namespace nnfarm

#endif  // NNFARM_PLAYER_DEVICE_CHOICE_H_
