#include "operand_rules.h"

#include <cmath>

namespace nnsim {
namespace {

struct ZeroPointRange {
  int32_t low;
  int32_t high;
};

ZeroPointRange ZeroPoints(int32_t type) {
  switch (type) {
    case ANEURALNETWORKS_TENSOR_QUANT8_ASYMM:
      return {0, 255};
    case ANEURALNETWORKS_TENSOR_QUANT8_ASYMM_SIGNED:
      return {-128, 127};
    case ANEURALNETWORKS_TENSOR_QUANT16_ASYMM:
      return {0, 65535};
    default:
      return {0, 0};
  }
}

Status CheckScale(int32_t type, float scale) {
  const std::string name = Info(type).name;
  NNSIM_REQUIRE(std::isfinite(scale) && scale >= 0, name + ": the scale is negative or not finite");
  if (type == ANEURALNETWORKS_TENSOR_INT32) return Ok();
  if (IsQuantized(type) && type != ANEURALNETWORKS_TENSOR_QUANT8_SYMM_PER_CHANNEL) {
    NNSIM_REQUIRE(scale > 0, name + " needs a scale above 0");
  } else {
    NNSIM_REQUIRE(scale == 0, name + " takes no scale");
  }
  return Ok();
}

}  // namespace

Status ToTensor(const ANeuralNetworksOperandType& type, int level, Tensor* tensor) {
  NNSIM_REQUIRE(IsKnownType(type.type), "operand type " + std::to_string(type.type) +
                                            " is not known");
  const TypeInfo& info = Info(type.type);
  NNSIM_REQUIRE(info.level <= level, std::string(info.name) + " needs feature level " +
                                         std::to_string(info.level) + ", this phone has " +
                                         std::to_string(level));
  NNSIM_REQUIRE(info.tensor || type.dimensionCount == 0,
                std::string(info.name) + " is a scalar and takes no dimensions");
  NNSIM_REQUIRE(type.dimensionCount == 0 || type.dimensions != nullptr,
                "dimensions are announced but null");
  NNSIM_RETURN_IF_ERROR(CheckScale(type.type, type.scale));
  const ZeroPointRange range = ZeroPoints(type.type);
  NNSIM_REQUIRE(type.zeroPoint >= range.low && type.zeroPoint <= range.high,
                std::string(info.name) + ": zero point " + std::to_string(type.zeroPoint) +
                    " is out of range");
  tensor->type = type.type;
  tensor->dims.assign(type.dimensions, type.dimensions + type.dimensionCount);
  tensor->scale = type.scale;
  tensor->zero_point = type.zeroPoint;
  uint64_t bytes = info.size;
  for (uint32_t dim : tensor->dims) {
    bytes *= dim == 0 ? 1 : dim;
    NNSIM_REQUIRE(bytes <= UINT32_MAX, "an operand of 4 GiB or more");
  }
  return Ok();
}

}  // namespace nnsim
