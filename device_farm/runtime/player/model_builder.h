// Replays an encoded model into an NNAPI model.
#ifndef NNFARM_PLAYER_MODEL_BUILDER_H_
#define NNFARM_PLAYER_MODEL_BUILDER_H_

#include "player/encoded_model.h"
#include "player/handles.h"
#include "player/weights.h"

namespace nnfarm {

// Builds and finishes the model. `encoded` and `weights` must outlive it: NNAPI keeps pointers to
// constants. Throws NnapiError (nnapi.model_refused, nnapi.extension_unsupported).
Owned<nnapi::Model> BuildModel(const nnapi::Api& api, const EncodedModel& encoded,
                               const Weights* weights);

}  // namespace nnfarm

#endif  // NNFARM_PLAYER_MODEL_BUILDER_H_
