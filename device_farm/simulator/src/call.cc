#include "call.h"

namespace nnsim {

float Call::Real(size_t i) {
  if (inputs_[i]->data == nullptr) {
    deferred_ = true;
    return 1.0f;
  }
  float value;
  ToFloats(*inputs_[i], 1, &value);
  return value;
}

std::vector<int32_t> Call::Ints(size_t i) {
  const Tensor& tensor = *inputs_[i];
  std::vector<int32_t> values(tensor.count(), 1);
  if (tensor.data == nullptr) {
    deferred_ = deferred_ || !values.empty();
  } else if (!values.empty()) {
    std::memcpy(values.data(), tensor.data, values.size() * sizeof(int32_t));
  }
  return values;
}

const float* Call::Values(size_t i) {
  const Tensor& tensor = *inputs_[i];
  if (tensor.type == ANEURALNETWORKS_TENSOR_FLOAT32) {
    return reinterpret_cast<const float*>(tensor.data);
  }
  return Derived(i, "real", [&tensor] {
           std::vector<float> values(tensor.count());
           ToFloats(tensor, values.size(), values.data());
           return values;
         })
      .data();
}

float* Call::Results(size_t i) {
  const Tensor& tensor = *outputs_[i];
  if (tensor.type == ANEURALNETWORKS_TENSOR_FLOAT32) return reinterpret_cast<float*>(tensor.data);
  scratch_.emplace_back(tensor.count());
  pending_.emplace_back(i, scratch_.back().data());
  return scratch_.back().data();
}

const std::vector<float>& Call::Derived(size_t i, const std::string& slot,
                                        const ConstantCache::Maker& make) {
  if (inputs_[i]->constant != nullptr) return inputs_[i]->constant->Get(slot, make);
  const std::pair<size_t, std::string> key(i, slot);
  auto found = derived_.find(key);
  if (found == derived_.end()) found = derived_.emplace(key, make()).first;
  return found->second;
}

void Call::Finish() {
  for (const auto& [index, values] : pending_) {
    FromFloats(values, outputs_[index]->count(), *outputs_[index]);
  }
  pending_.clear();
  scratch_.clear();
  derived_.clear();
}

}  // namespace nnsim
