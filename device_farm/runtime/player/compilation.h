// A model compiled by NNAPI for the chosen devices, as the settings ask.
#ifndef NNFARM_PLAYER_COMPILATION_H_
#define NNFARM_PLAYER_COMPILATION_H_

#include <vector>

#include "player/device_choice.h"
#include "player/encoded_model.h"
#include "player/handles.h"
#include "player/settings.h"

namespace nnfarm {

// NNAPI takes time limits where it compiles for one device, from level 4.
bool CanLimitTime(const nnapi::Api& api, const std::vector<ChosenDevice>& devices);

// The key of NNAPI's compilation cache: one value for the encoded model with its weights' hash, its
// precision, and names and driver versions of the devices.
Sha256Digest CacheToken(const EncodedModel& encoded, const std::vector<ChosenDevice>& devices);

// Compiles `model`. A setting this level does not know is logged: it changes no answer.
// Throws NnapiError (nnapi.compile_failed, nnapi.timeout).
Owned<nnapi::Compilation> CompileModel(const nnapi::Api& api, nnapi::Model* model,
                                       const EncodedModel& encoded,
                                       const std::vector<ChosenDevice>& devices,
                                       const PlayerSettings& settings);

}  // namespace nnfarm

#endif  // NNFARM_PLAYER_COMPILATION_H_
