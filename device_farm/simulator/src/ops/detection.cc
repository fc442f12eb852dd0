// AXIS_ALIGNED_BBOX_TRANSFORM and BOX_WITH_NMS_LIMIT.
#include "ops/boxes.h"

#include "op_registry.h"
#include "ops/rules.h"

namespace nnsim::ops_detection {
namespace {

Status PrepareTransform(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 2, 2));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 1, 2, 2));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 2, 1, 1));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 3, 2, 2));
  const uint32_t rois = call.Shape(0)[0];
  NNSIM_REQUIRE(call.Shape(0)[1] == 4 && call.Shape(1)[0] == rois && call.Shape(2)[0] == rois &&
                    call.Shape(1)[1] % 4 == 0 && call.Shape(3)[1] == 2,
                "regions, deltas, batches and image sizes do not fit together");
  if (call.In(2).data != nullptr) {
    for (int32_t batch : call.Ints(2)) {
      NNSIM_REQUIRE(batch >= 0 && static_cast<uint32_t>(batch) < call.Shape(3)[0],
                    "a region names an image that does not exist");
    }
  }
  call.SetOut(0, call.Shape(1));
  return Ok();
}

void ExecuteTransform(Call& call) {
  const float *rois = call.Values(0), *deltas = call.Values(1), *images = call.Values(3);
  const std::vector<int32_t> batch = call.Ints(2);
  const size_t classes = call.Shape(1)[1] / 4;
  float* out = call.Results();
  for (size_t r = 0; r < batch.size(); ++r) {
    const Box roi{rois[4 * r], rois[4 * r + 1], rois[4 * r + 2], rois[4 * r + 3]};
    const float* image = images + 2 * static_cast<size_t>(batch[r]);  // height, width
    for (size_t c = 0; c < classes; ++c) {
      const size_t at = 4 * (r * classes + c);
      const Box box = ClipTo(Transform(roi, deltas + at), image[1], image[0]);
      std::copy_n(&box.x1, 4, out + at);
    }
  }
}

Status PrepareNms(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 2, 2));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 1, 2, 2));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 2, 1, 1));
  const uint32_t rois = call.Shape(0)[0], classes = call.Shape(0)[1];
  NNSIM_REQUIRE(call.Shape(1)[0] == rois && call.Shape(1)[1] == 4 * classes &&
                    call.Shape(2)[0] == rois,
                "scores, boxes and batches do not fit together");
  const int32_t kernel = call.Int(5);
  NNSIM_REQUIRE(kernel >= 0 && kernel <= 2, "no such kernel");
  NNSIM_RETURN_IF_ERROR(CheckSameQuantization(call, 0, 0));
  NNSIM_RETURN_IF_ERROR(CheckSameQuantization(call, 1, 1));
  call.SetDynamic();
  return Ok();
}

// A survivor with its class and batch.
struct Detection {
  Candidate candidate;
  int32_t label, batch;
};

// All detections of the rows [begin, end), which are one batch. Class 0 is the background.
std::vector<Detection> DetectBatch(Call& call, size_t begin, size_t end, Suppression rules,
                                   float threshold) {
  const float *scores = call.Values(0), *boxes = call.Values(1);
  const size_t classes = call.Shape(0)[1];
  std::vector<Detection> found;
  for (size_t label = 1; label < classes; ++label) {
    std::vector<Candidate> candidates;
    for (size_t row = begin; row < end; ++row) {
      const size_t at = row * classes + label;
      const float* box = boxes + 4 * at;
      if (scores[at] <= threshold) continue;
      candidates.push_back(
          {{box[0], box[1], box[2], box[3]}, scores[at], static_cast<int32_t>(row)});
    }
    for (const Candidate& kept : Suppress(std::move(candidates), rules)) {
      found.push_back({kept, static_cast<int32_t>(label), call.Data<int32_t>(2)[begin]});
    }
  }
  if (rules.most >= 0 && found.size() > static_cast<size_t>(rules.most)) {
    std::stable_sort(found.begin(), found.end(), [](const Detection& a, const Detection& b) {
      return a.candidate.score > b.candidate.score;
    });
    found.resize(static_cast<size_t>(rules.most));
    std::stable_sort(found.begin(), found.end(),
                     [](const Detection& a, const Detection& b) { return a.label < b.label; });
  }
  return found;
}

void Store(Call& call, const std::vector<Detection>& all) {
  const uint32_t count = static_cast<uint32_t>(all.size());
  call.AllocateOut(0, {count});
  call.AllocateOut(1, {count, 4});
  call.AllocateOut(2, {count});
  call.AllocateOut(3, {count});
  float *scores = call.Results(0), *boxes = call.Results(1);
  for (size_t i = 0; i < all.size(); ++i) {
    scores[i] = all[i].candidate.score;
    std::copy_n(&all[i].candidate.box.x1, 4, boxes + 4 * i);
    call.OutData<int32_t>(2)[i] = all[i].label;
    call.OutData<int32_t>(3)[i] = all[i].batch;
  }
}

void ExecuteNms(Call& call) {
  const std::vector<int32_t> batch = call.Ints(2);
  Suppression rules;
  rules.most = call.Int(4);
  rules.kernel = static_cast<Kernel>(call.Int(5));
  rules.iou_threshold = call.Real(6);
  rules.sigma = call.Real(7);
  rules.score_threshold = call.Real(8);
  std::vector<Detection> all;
  for (size_t begin = 0; begin < batch.size();) {
    size_t end = begin;
    while (end < batch.size() && batch[end] == batch[begin]) ++end;
    for (const Detection& found : DetectBatch(call, begin, end, rules, call.Real(3))) {
      all.push_back(found);
    }
    begin = end;
  }
  Store(call, all);
}

const Registrar kOps{
    {41, "AXIS_ALIGNED_BBOX_TRANSFORM", "F3 H3",
     {{3, "XXIX>X"}, {3, "UQIU>U"}, {4, "USIU>U"}}, PrepareTransform, ExecuteTransform},
    {44, "BOX_WITH_NMS_LIMIT", "F3 H3",
     {{3, "XXIsiisss>XXII"}, {3, "QUIfiifff>QUII"}, {4, "SUIfiifff>SUII"}}, PrepareNms,
     ExecuteNms},
};

}  // namespace
}  // namespace nnsim::ops_detection
