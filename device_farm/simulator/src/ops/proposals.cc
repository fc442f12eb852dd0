// GENERATE_PROPOSALS and DETECTION_POSTPROCESSING: from anchors to boxes.
#include <numeric>

#include "op_registry.h"
#include "ops/boxes.h"
#include "ops/conv.h"

namespace nnsim::ops_proposals {
namespace {

Status PrepareProposals(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 4, 4));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 1, 4, 4));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 2, 2, 2));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 3, 2, 2));
  const Image scores = ReadImage(call.Shape(0), call.Bool(10));
  const Image deltas = ReadImage(call.Shape(1), call.Bool(10));
  NNSIM_REQUIRE(scores.height == deltas.height && scores.width == deltas.width &&
                    scores.batch == deltas.batch && deltas.depth == 4 * scores.depth,
                "scores and deltas do not fit together");
  NNSIM_REQUIRE(call.Shape(2) == (Dims{scores.depth, 4}) &&
                    call.Shape(3) == (Dims{scores.batch, 2}),
                "anchors or image sizes do not fit the scores");
  NNSIM_RETURN_IF_ERROR(CheckSameQuantization(call, 0, 0));
  NNSIM_RETURN_IF_ERROR(CheckSameQuantization(call, 3, 1));
  call.SetDynamic();
  return Ok();
}

// What every image of the batch shares.
struct Grid {
  Image image;
  const float* anchors;
  float stride_h, stride_w;
  size_t before, after;  // how many candidates go into suppression and come out of it
  float minimum;
};

std::vector<Candidate> Propose(const Grid& grid, const float* scores, const float* deltas,
                               float height, float width, float iou_threshold) {
  const size_t count = static_cast<size_t>(grid.image.height) * grid.image.width * grid.image.depth;
  std::vector<int32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [scores](int32_t a, int32_t b) { return scores[a] > scores[b]; });
  order.resize(std::min(count, grid.before));
  std::vector<Candidate> candidates;
  for (int32_t at : order) {
    const size_t cell = static_cast<size_t>(at) / grid.image.depth;
    const float* anchor = grid.anchors + 4 * (static_cast<size_t>(at) % grid.image.depth);
    const float x = static_cast<float>(cell % grid.image.width) * grid.stride_w;
    const float y = static_cast<float>(cell / grid.image.width) * grid.stride_h;
    const Box moved{anchor[0] + x, anchor[1] + y, anchor[2] + x, anchor[3] + y};
    const Box box = ClipTo(Transform(moved, deltas + 4 * at), width, height);
    const float w = box.x2 - box.x1, h = box.y2 - box.y1;
    if (w > grid.minimum && h > grid.minimum && box.x1 + w / 2 < width && box.y1 + h / 2 < height) {
      candidates.push_back({box, scores[at], at});
    }
  }
  Suppression rules;
  rules.iou_threshold = iou_threshold;
  rules.most = static_cast<int32_t>(grid.after);
  return Suppress(std::move(candidates), rules);
}

// Zero or less means no limit.
size_t Limit(int32_t count) { return count <= 0 ? INT32_MAX : static_cast<size_t>(count); }

void ExecuteProposals(Call& call) {
  const bool nchw = call.Bool(10);
  const Image image = ReadImage(call.Shape(0), nchw), wide = ReadImage(call.Shape(1), nchw);
  std::vector<float> scores(call.Values(0), call.Values(0) + call.In(0).count());
  std::vector<float> deltas(call.Values(1), call.Values(1) + call.In(1).count());
  if (nchw) {
    scores = ToNhwc(scores.data(), image);
    deltas = ToNhwc(deltas.data(), wide);
  }
  const float* sizes = call.Values(3);
  const Grid grid{image, call.Values(2), call.Real(4), call.Real(5), Limit(call.Int(6)),
                  Limit(call.Int(7)), std::max(call.Real(9), 1.0f)};
  const size_t cells = static_cast<size_t>(image.height) * image.width * image.depth;
  std::vector<std::pair<Candidate, int32_t>> all;
  for (uint32_t b = 0; b < image.batch; ++b) {
    for (const Candidate& found :
         Propose(grid, scores.data() + b * cells, deltas.data() + 4 * b * cells, sizes[2 * b],
                 sizes[2 * b + 1], call.Real(8))) {
      all.emplace_back(found, static_cast<int32_t>(b));
    }
  }
  const uint32_t count = static_cast<uint32_t>(all.size());
  call.AllocateOut(0, {count});
  call.AllocateOut(1, {count, 4});
  call.AllocateOut(2, {count});
  float *out_scores = call.Results(0), *out_boxes = call.Results(1);
  for (size_t i = 0; i < all.size(); ++i) {
    out_scores[i] = all[i].first.score;
    std::copy_n(&all[i].first.box.x1, 4, out_boxes + 4 * i);
    call.OutData<int32_t>(2)[i] = all[i].second;
  }
}

Status PrepareDetection(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 3, 3));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 1, 3, 3));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 2, 2, 2));
  const Dims &scores = call.Shape(0), &deltas = call.Shape(1), &anchors = call.Shape(2);
  NNSIM_REQUIRE(deltas[0] == scores[0] && deltas[1] == scores[1] && deltas[2] >= 4 &&
                    scores[2] > 1 && anchors[0] == scores[1] && anchors[1] == 4,
                "scores, deltas and anchors do not fit together");
  const int32_t most = call.Int(8);
  NNSIM_REQUIRE(most > 0 && call.Int(9) > 0 && (!call.Bool(7) || call.Int(10) > 0),
                "the limits must be above 0");
  // In suppression by anchor each detection is listed once for each of its classes.
  const uint32_t slots = static_cast<uint32_t>(most * (call.Bool(7) ? 1 : call.Int(9)));
  call.SetOut(0, {scores[0], slots});
  call.SetOut(1, {scores[0], slots, 4});
  call.SetOut(2, {scores[0], slots});
  call.SetOut(3, {scores[0]});
  return Ok();
}

// Boxes here are top, left, bottom, right; overlap is the same either way.
std::vector<Box> DecodeBoxes(Call& call, size_t batch) {
  const size_t count = call.Shape(1)[1], width = call.Shape(1)[2];
  const float *deltas = call.Values(1) + batch * count * width, *anchors = call.Values(2);
  std::vector<Box> boxes;
  for (size_t i = 0; i < count; ++i, deltas += width, anchors += 4) {
    const float y = deltas[0] / call.Real(3) * anchors[2] + anchors[0];
    const float x = deltas[1] / call.Real(4) * anchors[3] + anchors[1];
    const float h = std::exp(deltas[2] / call.Real(5)) * anchors[2] / 2;
    const float w = std::exp(deltas[3] / call.Real(6)) * anchors[3] / 2;
    boxes.push_back({y - h, x - w, y + h, x + w});
  }
  return boxes;
}

struct Labelled {
  Box box;
  float score;
  int32_t label;
};

// Suppression in each class by itself.
std::vector<Labelled> DetectByClass(Call& call, const std::vector<Box>& boxes, const float* scores,
                                    size_t classes, size_t first, const Suppression& common) {
  Suppression rules = common;
  rules.most = call.Int(10);
  std::vector<Labelled> found;
  for (size_t label = first; label < classes; ++label) {
    std::vector<Candidate> candidates;
    for (size_t i = 0; i < boxes.size(); ++i) {
      const float score = scores[i * classes + label];
      if (score > call.Real(11)) candidates.push_back({boxes[i], score, static_cast<int32_t>(i)});
    }
    for (const Candidate& kept : Suppress(std::move(candidates), rules)) {
      found.push_back({kept.box, kept.score, static_cast<int32_t>(label - first)});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Labelled& a, const Labelled& b) { return a.score > b.score; });
  return found;
}

// One suppression over the best score of each anchor; survivors report their best classes.
std::vector<Labelled> DetectByAnchor(Call& call, const std::vector<Box>& boxes, const float* scores,
                                     size_t classes, size_t first, const Suppression& common) {
  Suppression rules = common;
  rules.most = call.Int(8);
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < boxes.size(); ++i) {
    const float* line = scores + i * classes;
    const float best = *std::max_element(line + first, line + classes);
    if (best > call.Real(11)) candidates.push_back({boxes[i], best, static_cast<int32_t>(i)});
  }
  std::vector<Labelled> found;
  for (const Candidate& kept : Suppress(std::move(candidates), rules)) {
    const float* line = scores + static_cast<size_t>(kept.index) * classes;
    std::vector<size_t> labels(classes - first);
    std::iota(labels.begin(), labels.end(), first);
    std::stable_sort(labels.begin(), labels.end(),
                     [line](size_t a, size_t b) { return line[a] > line[b]; });
    labels.resize(std::min(labels.size(), static_cast<size_t>(call.Int(9))));
    for (size_t label : labels) {
      found.push_back({kept.box, line[label], static_cast<int32_t>(label - first)});
    }
  }
  return found;
}

void ExecuteDetection(Call& call) {
  // The first column is always the background; the flag says whether labels count it.
  const size_t anchors = call.Shape(0)[1], classes = call.Shape(0)[2], first = 1;
  const int32_t shift = call.Bool(13) ? 1 : 0;
  const size_t slots = call.Out().dims[1];
  Suppression rules;
  rules.iou_threshold = call.Real(12);
  float *scores = call.Results(0), *boxes = call.Results(1);
  std::fill_n(scores, call.Out(0).count(), 0.0f);
  std::fill_n(boxes, call.Out(1).count(), 0.0f);
  std::fill_n(call.OutData<int32_t>(2), call.Out(2).count(), 0);
  for (size_t b = 0; b < call.Shape(0)[0]; ++b) {
    const std::vector<Box> decoded = DecodeBoxes(call, b);
    const float* line = call.Values(0) + b * anchors * classes;
    std::vector<Labelled> found =
        (call.Bool(7) ? DetectByClass : DetectByAnchor)(call, decoded, line, classes, first, rules);
    found.resize(std::min(found.size(), slots));
    for (size_t i = 0; i < found.size(); ++i) {
      scores[b * slots + i] = found[i].score;
      std::copy_n(&found[i].box.x1, 4, boxes + 4 * (b * slots + i));
      call.OutData<int32_t>(2)[b * slots + i] = found[i].label + shift;
    }
    call.OutData<int32_t>(3)[b] = static_cast<int32_t>(found.size());
  }
}

const Registrar kOps{
    {52, "GENERATE_PROPOSALS", "F3 H3",
     {{3, "XXXXssiissb>XXI"}, {3, "QQWUffiiffb>QUI"}, {4, "SSWUffiiffb>SUI"}}, PrepareProposals,
     ExecuteProposals},
    {47, "DETECTION_POSTPROCESSING", "F3 H3", {{3, "XXXssssbiiissb>XXII"}}, PrepareDetection,
     ExecuteDetection},
};

}  // namespace
}  // namespace nnsim::ops_proposals
