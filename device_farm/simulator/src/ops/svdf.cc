// SVDF: a layer whose weights are split over features and time.
#include <algorithm>

#include "op_registry.h"
#include "ops/rules.h"

namespace nnsim::ops_svdf {
namespace {

Status PrepareSvdf(Call& call) {
  for (size_t i : {0, 1, 2, 4}) NNSIM_RETURN_IF_ERROR(CheckRank(call, i, 2, 2));
  const int32_t rank = call.Int(5);
  const uint32_t batch = call.Shape(0)[0], filters = call.Shape(1)[0], memory = call.Shape(2)[1];
  NNSIM_REQUIRE(rank > 0 && filters % static_cast<uint32_t>(rank) == 0,
                "the filters are not a multiple of the rank");
  const uint32_t units = filters / static_cast<uint32_t>(rank);
  NNSIM_REQUIRE(call.Shape(1)[1] == call.Shape(0)[1] && call.Shape(2)[0] == filters,
                "the weights do not fit the input");
  NNSIM_REQUIRE(call.Shape(4) == (Dims{batch, memory * filters}), "the state does not fit");
  NNSIM_REQUIRE(!call.Has(3) || call.Shape(3) == Dims{units}, "the bias needs one value a unit");
  NNSIM_RETURN_IF_ERROR(CheckActivation(call.Int(6)));
  call.SetOut(0, call.Shape(4));
  call.SetOut(1, {batch, units});
  return Ok();
}

// Each filter keeps its last `memory` answers; the output is their weighted sum, added up over the
// ranks of a unit.
void ExecuteSvdf(Call& call) {
  const size_t batch = call.Shape(0)[0], depth = call.Shape(0)[1], filters = call.Shape(1)[0];
  const size_t memory = call.Shape(2)[1], rank = static_cast<size_t>(call.Int(5));
  const float *x = call.Values(0), *features = call.Values(1), *time = call.Values(2);
  const float* bias = call.Has(3) ? call.Values(3) : nullptr;
  const float* state = call.Values(4);
  float *next = call.Results(0), *out = call.Results(1);
  const Range range = FusedRange(call.Int(6));
  const size_t units = filters / rank;
  for (size_t b = 0; b < batch; ++b) {
    for (size_t u = 0; u < units; ++u) {
      float sum = bias == nullptr ? 0 : bias[u];
      for (size_t f = u * rank; f < (u + 1) * rank; ++f) {
        const size_t at = (b * filters + f) * memory;
        float feature = 0;
        for (size_t i = 0; i < depth; ++i) feature += features[f * depth + i] * x[b * depth + i];
        const float* weights = time + f * memory;
        for (size_t m = 0; m + 1 < memory; ++m) sum += weights[m] * state[at + m];
        sum += weights[memory - 1] * feature;
        // The next state is shifted already; its last place waits for the next feature.
        std::copy_n(state + at + 1, memory - 1, next + at);
        if (memory > 1) next[at + memory - 2] = feature;
        next[at + memory - 1] = 0;
      }
      out[b * units + u] = range.Clamp(sum);
    }
  }
}

const Registrar kOps{
    {27, "SVDF", "F1 H3", {{1, "XXXXXii>XX"}}, PrepareSvdf, ExecuteSvdf},
};

}  // namespace
}  // namespace nnsim::ops_svdf
