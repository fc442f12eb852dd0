// Boxes as corner coordinates, and suppression of those that overlap.
#ifndef DEVICE_FARM_SIMULATOR_SRC_OPS_BOXES_H_
#define DEVICE_FARM_SIMULATOR_SRC_OPS_BOXES_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace nnsim {

// Left, top, right, bottom.
struct Box {
  float x1, y1, x2, y2;

  float Area() const { return (x2 - x1) * (y2 - y1); }
};

inline float IntersectionOverUnion(const Box& a, const Box& b) {
  const float w = std::max(std::min(a.x2, b.x2) - std::max(a.x1, b.x1), 0.0f);
  const float h = std::max(std::min(a.y2, b.y2) - std::max(a.y1, b.y1), 0.0f);
  const float both = w * h;
  const float either = a.Area() + b.Area() - both;
  return either > 0 ? both / either : 0.0f;
}

// Moves and scales a box by deltas relative to its size.
inline Box Transform(const Box& box, const float* deltas) {
  const float w = box.x2 - box.x1, h = box.y2 - box.y1;
  const float x = (box.x1 + box.x2) / 2 + deltas[0] * w, y = (box.y1 + box.y2) / 2 + deltas[1] * h;
  const float half_w = std::exp(deltas[2]) * w / 2, half_h = std::exp(deltas[3]) * h / 2;
  return {x - half_w, y - half_h, x + half_w, y + half_h};
}

inline Box ClipTo(const Box& box, float width, float height) {
  return {std::clamp(box.x1, 0.0f, width), std::clamp(box.y1, 0.0f, height),
          std::clamp(box.x2, 0.0f, width), std::clamp(box.y2, 0.0f, height)};
}

struct Candidate {
  Box box;
  float score;
  int32_t index;  // where it came from
};

enum class Kernel { kHard = 0, kLinear = 1, kGaussian = 2 };

struct Suppression {
  Kernel kernel = Kernel::kHard;
  float iou_threshold = 0.5f;
  float sigma = 1;
  float score_threshold = 0;  // soft kernels: candidates whose score falls below are dropped
  int32_t most = -1;          // negative: no limit

  float Weight(float iou) const {
    if (kernel == Kernel::kGaussian) return std::exp(-iou * iou / sigma);
    if (iou < iou_threshold) return 1;
    return kernel == Kernel::kLinear ? 1 - iou : 0;
  }
};

// The survivors, best first; soft kernels lower the scores of those that overlap a better one.
inline std::vector<Candidate> Suppress(std::vector<Candidate> left, const Suppression& rules) {
  std::vector<Candidate> kept;
  while (!left.empty() && (rules.most < 0 || kept.size() < static_cast<size_t>(rules.most))) {
    const auto best = std::max_element(
        left.begin(), left.end(),
        [](const Candidate& a, const Candidate& b) { return a.score < b.score; });
    const Candidate chosen = *best;
    left.erase(best);
    kept.push_back(chosen);
    std::vector<Candidate> next;
    for (Candidate candidate : left) {
      const float weight = rules.Weight(IntersectionOverUnion(chosen.box, candidate.box));
      if (weight == 0) continue;
      candidate.score *= weight;
      if (rules.kernel == Kernel::kHard || candidate.score >= rules.score_threshold) {
        next.push_back(candidate);
      }
    }
    left = std::move(next);
  }
  return kept;
}

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_OPS_BOXES_H_
