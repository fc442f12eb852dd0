#include "tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "extensions.h"

namespace nnsim {
namespace {

constexpr TypeInfo kTypes[kTypeCount] = {
    {"FLOAT32", 'f', 4, false, 1},
    {"INT32", 'i', 4, false, 1},
    {"UINT32", 'u', 4, false, 1},
    {"TENSOR_FLOAT32", 'F', 4, true, 1},
    {"TENSOR_INT32", 'I', 4, true, 1},
    {"TENSOR_QUANT8_ASYMM", 'Q', 1, true, 1},
    {"BOOL", 'b', 1, false, 3},
    {"TENSOR_QUANT16_SYMM", 'W', 2, true, 3},
    {"TENSOR_FLOAT16", 'H', 2, true, 3},
    {"TENSOR_BOOL8", 'B', 1, true, 3},
    {"FLOAT16", 'h', 2, false, 3},
    {"TENSOR_QUANT8_SYMM_PER_CHANNEL", 'C', 1, true, 3},
    {"TENSOR_QUANT16_ASYMM", 'U', 2, true, 3},
    {"TENSOR_QUANT8_SYMM", 'Y', 1, true, 3},
    {"TENSOR_QUANT8_ASYMM_SIGNED", 'S', 1, true, 4},
    {"MODEL", 'M', 0, false, 4},
};

template <typename T>
void Dequantize(const Tensor& tensor, uint64_t count, float* out) {
  const T* in = reinterpret_cast<const T*>(tensor.data);
  // A tensor of plain integers has scale 0 and keeps its numbers.
  const float scale = tensor.scale == 0 ? 1.0f : tensor.scale;
  const int32_t zero_point = tensor.zero_point;
  for (uint64_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>(static_cast<int32_t>(in[i]) - zero_point) * scale;
  }
}

template <typename T>
void Quantize(const float* values, uint64_t count, const Tensor& tensor) {
  T* out = reinterpret_cast<T*>(tensor.data);
  const float scale = tensor.scale == 0 ? 1.0f : tensor.scale;
  const float zero_point = static_cast<float>(tensor.zero_point);
  const float low = static_cast<float>(std::numeric_limits<T>::min());
  const float high = static_cast<float>(std::numeric_limits<T>::max());
  for (uint64_t i = 0; i < count; ++i) {
    const float value = std::round(values[i] / scale) + zero_point;
    out[i] = static_cast<T>(std::isnan(value) ? 0.0f : std::clamp(value, low, high));
  }
}

void QuantizeInt32(const float* values, uint64_t count, const Tensor& tensor) {
  int32_t* out = reinterpret_cast<int32_t*>(tensor.data);
  const double scale = tensor.scale == 0 ? 1.0 : tensor.scale;
  for (uint64_t i = 0; i < count; ++i) {
    const double value = std::round(values[i] / scale);
    const double finite = std::isnan(value) ? 0.0 : value;
    out[i] = static_cast<int32_t>(std::clamp(finite, -2147483648.0, 2147483647.0));
  }
}

void DequantizePerChannel(const Tensor& tensor, uint64_t count, float* out) {
  const int8_t* in = reinterpret_cast<const int8_t*>(tensor.data);
  uint64_t inner = 1;
  for (size_t d = tensor.channel_dim + 1; d < tensor.dims.size(); ++d) inner *= tensor.dims[d];
  const uint64_t channels = tensor.channel_scales.size();
  for (uint64_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>(in[i]) * tensor.channel_scales[(i / inner) % channels];
  }
}

}  // namespace

const TypeInfo& Info(int32_t type) {
  const TypeInfo* extension = FindExtensionType(type);
  return extension != nullptr ? *extension : kTypes[type];
}

bool IsKnownType(int32_t type) {
  return (type >= 0 && type < kTypeCount) || FindExtensionType(type) != nullptr;
}

bool IsQuantized(int32_t type) {
  switch (type) {
    case ANEURALNETWORKS_TENSOR_QUANT8_ASYMM:
    case ANEURALNETWORKS_TENSOR_QUANT8_ASYMM_SIGNED:
    case ANEURALNETWORKS_TENSOR_QUANT8_SYMM:
    case ANEURALNETWORKS_TENSOR_QUANT8_SYMM_PER_CHANNEL:
    case ANEURALNETWORKS_TENSOR_QUANT16_SYMM:
    case ANEURALNETWORKS_TENSOR_QUANT16_ASYMM:
      return true;
    default:
      return false;
  }
}

uint64_t ElementCount(const Dims& dims) {
  uint64_t count = 1;
  for (uint32_t dim : dims) count *= dim;
  return count;
}

std::string ToString(const Dims& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(dims[i]);
  }
  return text + "]";
}

float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f;
  const uint32_t mantissa = half & 0x3ff;
  float value;
  if (exponent == 0) {
    value = std::ldexp(static_cast<float>(mantissa), -24);
    return sign ? -value : value;
  }
  const uint32_t bits = exponent == 31 ? (sign | 0x7f800000 | (mantissa << 13))
                                       : (sign | ((exponent + 112) << 23) | (mantissa << 13));
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

uint16_t FloatToHalf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude < 0x38800000) {
    // Subnormal: the nearest multiple of 2^-24, ties to even.
    const float scaled = std::ldexp(std::fabs(value), 24);
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(scaled)));
  }
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

const std::vector<float>& ConstantCache::Get(const std::string& slot, const Maker& make) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  auto found = slots_.find(slot);
  if (found == slots_.end()) found = slots_.emplace(slot, make()).first;
  return found->second;
}

bool Tensor::fully_known() const {
  if (Info(type).tensor && dims.empty()) return false;
  return std::find(dims.begin(), dims.end(), 0u) == dims.end();
}

void ToFloats(const Tensor& tensor, uint64_t count, float* out) {
  switch (tensor.type) {
    case ANEURALNETWORKS_FLOAT32:
    case ANEURALNETWORKS_TENSOR_FLOAT32:
      if (count != 0) std::memcpy(out, tensor.data, count * sizeof(float));
      return;
    case ANEURALNETWORKS_FLOAT16:
    case ANEURALNETWORKS_TENSOR_FLOAT16:
      for (uint64_t i = 0; i < count; ++i) {
        out[i] = HalfToFloat(reinterpret_cast<const uint16_t*>(tensor.data)[i]);
      }
      return;
    case ANEURALNETWORKS_TENSOR_QUANT8_ASYMM:
      return Dequantize<uint8_t>(tensor, count, out);
    case ANEURALNETWORKS_TENSOR_QUANT8_ASYMM_SIGNED:
    case ANEURALNETWORKS_TENSOR_QUANT8_SYMM:
      return Dequantize<int8_t>(tensor, count, out);
    case ANEURALNETWORKS_TENSOR_QUANT16_SYMM:
      return Dequantize<int16_t>(tensor, count, out);
    case ANEURALNETWORKS_TENSOR_QUANT16_ASYMM:
      return Dequantize<uint16_t>(tensor, count, out);
    case ANEURALNETWORKS_TENSOR_QUANT8_SYMM_PER_CHANNEL:
      return DequantizePerChannel(tensor, count, out);
    case ANEURALNETWORKS_BOOL:
    case ANEURALNETWORKS_TENSOR_BOOL8:
      for (uint64_t i = 0; i < count; ++i) out[i] = tensor.data[i] != 0 ? 1.0f : 0.0f;
      return;
    default:
      return Dequantize<int32_t>(tensor, count, out);
  }
}

void FromFloats(const float* values, uint64_t count, const Tensor& tensor) {
  switch (tensor.type) {
    case ANEURALNETWORKS_TENSOR_FLOAT32:
      if (count != 0) std::memcpy(tensor.data, values, count * sizeof(float));
      return;
    case ANEURALNETWORKS_TENSOR_FLOAT16:
      for (uint64_t i = 0; i < count; ++i) {
        reinterpret_cast<uint16_t*>(tensor.data)[i] = FloatToHalf(values[i]);
      }
      return;
    case ANEURALNETWORKS_TENSOR_QUANT8_ASYMM:
      return Quantize<uint8_t>(values, count, tensor);
    case ANEURALNETWORKS_TENSOR_QUANT8_ASYMM_SIGNED:
    case ANEURALNETWORKS_TENSOR_QUANT8_SYMM:
      return Quantize<int8_t>(values, count, tensor);
    case ANEURALNETWORKS_TENSOR_QUANT16_SYMM:
      return Quantize<int16_t>(values, count, tensor);
    case ANEURALNETWORKS_TENSOR_QUANT16_ASYMM:
      return Quantize<uint16_t>(values, count, tensor);
    case ANEURALNETWORKS_TENSOR_BOOL8:
      for (uint64_t i = 0; i < count; ++i) tensor.data[i] = values[i] != 0 ? 1 : 0;
      return;
    default:
      return QuantizeInt32(values, count, tensor);
  }
}

}  // namespace nnsim
