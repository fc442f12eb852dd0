// Operand types and tensors: what an operation reads and writes.
#ifndef DEVICE_FARM_SIMULATOR_SRC_TENSOR_H_
#define DEVICE_FARM_SIMULATOR_SRC_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "nnapi.h"

namespace nnsim {

// Sizes, outermost first. In a model 0 means "known at run time"; in an execution it means empty.
using Dims = std::vector<uint32_t>;

// What is fixed about an operand type code.
struct TypeInfo {
  const char* name;
  char letter;      // in the signatures of op_registry.h
  uint32_t size;    // bytes of one element
  bool tensor;
  int level;        // feature level that introduced it
};

constexpr int kTypeCount = 16;

// `type` must be known.
const TypeInfo& Info(int32_t type);
bool IsKnownType(int32_t type);
bool IsQuantized(int32_t type);

uint64_t ElementCount(const Dims& dims);
std::string ToString(const Dims& dims);

float HalfToFloat(uint16_t half);
uint16_t FloatToHalf(float value);

// Values derived from a constant operand (dequantized or repacked weights), made once.
class ConstantCache {
 public:
  using Maker = std::function<std::vector<float>()>;

  // `slot` names the form of the values; `make` runs on the first call for the slot.
  const std::vector<float>& Get(const std::string& slot, const Maker& make);

 private:
  std::recursive_mutex mutex_;  // making one form may ask for another
  std::map<std::string, std::vector<float>> slots_;
};

struct Tensor {
  int32_t type = ANEURALNETWORKS_TENSOR_FLOAT32;
  Dims dims;
  float scale = 0;
  int32_t zero_point = 0;
  uint32_t channel_dim = 0;
  std::vector<float> channel_scales;
  std::vector<uint8_t> extension_data;  // what an extension's type has besides
  bool omitted = false;              // an optional operand without value
  uint8_t* data = nullptr;           // null while a model is only checked and for empty tensors
  ConstantCache* constant = nullptr; // set for constant operands

  uint64_t count() const { return ElementCount(dims); }
  uint64_t size_bytes() const { return count() * Info(type).size; }
  bool fully_known() const;
};

// Converts `count` elements at `tensor.data` to real values (dequantizes).
void ToFloats(const Tensor& tensor, uint64_t count, float* out);
// Stores real values in the type of `tensor`, rounding and saturating.
void FromFloats(const float* values, uint64_t count, const Tensor& tensor);

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_TENSOR_H_
