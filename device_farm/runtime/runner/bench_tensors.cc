#include "runner/bench_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "api/tensor_memory.h"

namespace nnfarm {
namespace {

namespace ffi = tvm::ffi;

// Of the largest value.
constexpr double kMaxError = 1e-3;
constexpr double kMaxSteps = 1.0;
constexpr int kSmallIntegers = 4;
constexpr uint16_t kHalfOfOne = 0x3800;  // float16: 0.5, and up to 1 with ten bits more
constexpr uint16_t kHalfFraction = 0x3FF;

bool IsType(const DLDataType& type, uint8_t code, uint8_t bits) {
  return type.code == code && type.bits == bits;
}

double HalfToDouble(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & kHalfFraction;
  double size = 0.0;
  if (exponent == 31) {
    size = fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    size = std::ldexp(fraction, -24);
  } else {
    size = std::ldexp(fraction + 1024, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -size : size;
}

template <typename Type>
double Read(const uint8_t* place) {
  Type value;
  std::memcpy(&value, place, sizeof(value));
  return static_cast<double>(value);
}

double ReadHalf(const uint8_t* place) {
  uint16_t bits;
  std::memcpy(&bits, place, sizeof(bits));
  return HalfToDouble(bits);
}

using Reader = double (*)(const uint8_t*);

Reader ReaderOf(const DLDataType& type) {
  if (type.code == kDLFloat) {
    if (type.bits == 16) return ReadHalf;
    return type.bits == 32 ? Read<float> : Read<double>;
  }
  if (type.code == kDLInt) {
    if (type.bits == 64) return Read<int64_t>;
    if (type.bits == 32) return Read<int32_t>;
    return type.bits == 16 ? Read<int16_t> : Read<int8_t>;
  }
  return Read<uint8_t>;
}

template <typename Type, typename Draw>
void FillWith(uint8_t* data, size_t size, const Draw& draw) {
  for (size_t at = 0; at + sizeof(Type) <= size; at += sizeof(Type)) {
    const auto value = static_cast<Type>(draw());
    std::memcpy(data + at, &value, sizeof(value));
  }
}

void FillTensor(const ffi::Tensor& tensor, std::minstd_rand* random) {
  auto* data = static_cast<uint8_t*>(tensor.data_ptr());
  const size_t size = ffi::GetDataSize(tensor);
  const DLDataType type = tensor.dtype();
  const auto share = [&] { return static_cast<double>((*random)() - random->min()) / random->max(); };
  const auto small = [&] { return (*random)() % kSmallIntegers; };
  if (IsType(type, kDLFloat, 32)) {
    FillWith<float>(data, size, share);
  } else if (IsType(type, kDLFloat, 64)) {
    FillWith<double>(data, size, share);
  } else if (IsType(type, kDLFloat, 16)) {
    FillWith<uint16_t>(data, size, [&] { return kHalfOfOne | ((*random)() & kHalfFraction); });
  } else if (IsType(type, kDLInt, 8) || IsType(type, kDLUInt, 8)) {
    FillWith<uint8_t>(data, size, small);
  } else if (IsType(type, kDLInt, 16)) {
    FillWith<int16_t>(data, size, small);
  } else {
    std::memset(data, 0, size);  // may be indices: zero is in range everywhere
  }
}

bool IsClose(double mine, double theirs, double most) {
  if (std::isnan(mine) || std::isnan(theirs)) return std::isnan(mine) && std::isnan(theirs);
  return mine == theirs || std::abs(mine - theirs) <= most;
}

bool TensorAgrees(const ffi::Tensor& tensor, const std::vector<uint8_t>& theirs) {
  const auto* mine = static_cast<const uint8_t*>(tensor.data_ptr());
  if (std::equal(theirs.begin(), theirs.end(), mine)) return true;
  const Reader read = ReaderOf(tensor.dtype());
  const size_t step = tensor.dtype().bits / 8U;
  double most = kMaxSteps;
  if (tensor.dtype().code == kDLFloat) {
    double largest = 0.0;
    for (size_t at = 0; at < theirs.size(); at += step) {
      largest = std::max(largest, std::abs(read(&theirs[at])));  // keeps the first where one is NaN
    }
    most = kMaxError * largest;
  }
  for (size_t at = 0; at < theirs.size(); at += step) {
    if (!IsClose(read(mine + at), read(&theirs[at]), most)) return false;
  }
  return true;
}

}  // namespace

BenchTensors::BenchTensors(const std::vector<BenchTensor>& tensors) {
  for (const BenchTensor& tensor : tensors) {
    tensors_.push_back(AllocateTensor(tensor.shape, tensor.type->dtype));
  }
  arguments_.assign(tensors_.begin(), tensors_.end());
}

void BenchTensors::Fill() {
  std::minstd_rand random;  // the same numbers each time
  for (const ffi::Tensor& tensor : tensors_) FillTensor(tensor, &random);
}

std::vector<std::vector<uint8_t>> BenchTensors::Copy() const {
  std::vector<std::vector<uint8_t>> copies;
  for (const ffi::Tensor& tensor : tensors_) {
    const auto* data = static_cast<const uint8_t*>(tensor.data_ptr());
    copies.emplace_back(data, data + ffi::GetDataSize(tensor));
  }
  return copies;
}

bool BenchTensors::Agree(const std::vector<std::vector<uint8_t>>& theirs) const {
  return std::equal(tensors_.begin(), tensors_.end(), theirs.begin(), theirs.end(), TensorAgrees);
}

}  // namespace nnfarm
