// TOPK_V2, EMBEDDING_LOOKUP, HASHTABLE_LOOKUP and RANDOM_MULTINOMIAL: choosing elements or rows.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "op_registry.h"
#include "ops/rules.h"

namespace nnsim::ops_select {
namespace {

Status PrepareTopK(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckSameQuantization(call));
  Dims dims = call.Shape(0);
  const int32_t k = call.Int(1);
  NNSIM_REQUIRE(!dims.empty() && k > 0 && static_cast<uint32_t>(k) <= dims.back(),
                "k must be between 1 and the last dimension");
  dims.back() = static_cast<uint32_t>(k);
  call.SetOut(0, dims);
  call.SetOut(1, dims);
  return Ok();
}

template <typename T>
void TopK(Call& call, const T* values) {
  const size_t k = static_cast<size_t>(call.Int(1)), length = call.Shape(0).back();
  const size_t size = Info(call.In(0).type).size;
  std::vector<int32_t> order(length);
  for (size_t row = 0; row < call.In(0).count() / length; ++row) {
    const T* line = values + row * length;
    std::iota(order.begin(), order.end(), 0);
    // Among equals the one with the smaller index comes first.
    std::stable_sort(order.begin(), order.end(),
                     [line](int32_t a, int32_t b) { return line[a] > line[b]; });
    for (size_t i = 0; i < k; ++i) {
      const size_t from = row * length + static_cast<size_t>(order[i]), to = row * k + i;
      std::memcpy(call.OutData<uint8_t>() + to * size, call.Data<uint8_t>(0) + from * size, size);
      call.OutData<int32_t>(1)[to] = order[i];
    }
  }
}

void ExecuteTopK(Call& call) {
  if (call.In(0).type == ANEURALNETWORKS_TENSOR_INT32) return TopK(call, call.Data<int32_t>(0));
  TopK(call, call.Values(0));
}

Status PrepareEmbedding(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 1, 1));
  NNSIM_REQUIRE(call.Rank(1) >= 2, "the values need two dimensions");
  NNSIM_RETURN_IF_ERROR(CheckSameQuantization(call, 1));
  Dims dims = call.Shape(1);
  if (call.In(0).data != nullptr) {
    for (int32_t row : call.Ints(0)) {
      NNSIM_REQUIRE(row >= 0 && static_cast<uint32_t>(row) < dims[0],
                    "row " + std::to_string(row) + " is out of range");
    }
  }
  dims[0] = call.Shape(0)[0];
  call.SetOut(0, dims);
  return Ok();
}

void ExecuteEmbedding(Call& call) {
  const std::vector<int32_t> rows = call.Ints(0);
  const size_t bytes = call.In(1).size_bytes() / call.Shape(1)[0];
  for (size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(call.OutData<uint8_t>() + i * bytes,
                call.Data<uint8_t>(1) + static_cast<size_t>(rows[i]) * bytes, bytes);
  }
}

Status PrepareHashtable(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 1, 1));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 1, 1, 1));
  NNSIM_REQUIRE(call.Rank(2) >= 1 && call.Shape(2)[0] == call.Shape(1)[0],
                "one row of values a key is needed");
  NNSIM_RETURN_IF_ERROR(CheckSameQuantization(call, 2));
  Dims dims = call.Shape(2);
  dims[0] = call.Shape(0)[0];
  call.SetOut(0, dims);
  call.SetOut(1, {dims[0]});
  return Ok();
}

// Keys are sorted. A missing key gives zeros and a hit of 0.
void ExecuteHashtable(Call& call) {
  const std::vector<int32_t> wanted = call.Ints(0), keys = call.Ints(1);
  const size_t bytes = call.In(2).size_bytes() / call.Shape(2)[0];
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto found = std::lower_bound(keys.begin(), keys.end(), wanted[i]);
    const bool hit = found != keys.end() && *found == wanted[i];
    uint8_t* out = call.OutData<uint8_t>() + i * bytes;
    call.OutData<uint8_t>(1)[i] = hit ? 1 : 0;
    if (hit) {
      std::memcpy(out, call.Data<uint8_t>(2) + static_cast<size_t>(found - keys.begin()) * bytes,
                  bytes);
    } else {
      std::memset(out, 0, bytes);
    }
  }
}

Status PrepareMultinomial(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 2, 2));
  const int32_t samples = call.Int(1);
  NNSIM_REQUIRE(samples > 0, "the number of samples must be above 0");
  NNSIM_REQUIRE(call.Shape(2) == Dims{2}, "the seed has two numbers");
  call.SetOut(0, {call.Shape(0)[0], static_cast<uint32_t>(samples)});
  return Ok();
}

void ExecuteMultinomial(Call& call) {
  const std::vector<int32_t> seed = call.Ints(2);
  std::seed_seq sequence(seed.begin(), seed.end());
  std::mt19937 random(sequence);
  const size_t classes = call.Shape(0)[1], samples = call.Out().dims[1];
  const float* logits = call.Values(0);
  for (size_t row = 0; row < call.Shape(0)[0]; ++row) {
    const float* line = logits + row * classes;
    const float maximum = *std::max_element(line, line + classes);
    std::vector<double> weights(classes);
    for (size_t c = 0; c < classes; ++c) weights[c] = std::exp(line[c] - maximum);
    std::discrete_distribution<int32_t> distribution(weights.begin(), weights.end());
    for (size_t i = 0; i < samples; ++i) {
      call.OutData<int32_t>()[row * samples + i] = distribution(random);
    }
  }
}

const Registrar kOps{
    {90, "TOPK_V2", "F3 H3 I3 Q3 S4", {{3, "Xi>XI"}}, PrepareTopK, ExecuteTopK},
    {7, "EMBEDDING_LOOKUP", "F1 H3 Q3 I3 S4", {{1, "IX>X"}}, PrepareEmbedding, ExecuteEmbedding},
    {10, "HASHTABLE_LOOKUP", "F1 Q1 I1", {{1, "IIX>XQ"}}, PrepareHashtable, ExecuteHashtable},
    {74, "RANDOM_MULTINOMIAL", "F3 H3", {{3, "XiI>I"}}, PrepareMultinomial, ExecuteMultinomial},
};

}  // namespace
}  // namespace nnsim::ops_select
