#include "api/element_type.h"

namespace nnfarm {

const ElementType* FindElementType(const std::string& name) {
  static constexpr ElementType kTypes[] = {
      {"float32", "F32", {kDLFloat, 32, 1}}, {"float16", "F16", {kDLFloat, 16, 1}},
      {"float64", "F64", {kDLFloat, 64, 1}}, {"int8", "I8", {kDLInt, 8, 1}},
      {"uint8", "U8", {kDLUInt, 8, 1}},      {"int16", "I16", {kDLInt, 16, 1}},
      {"int32", "I32", {kDLInt, 32, 1}},     {"int64", "I64", {kDLInt, 64, 1}},
      {"bool", "BOOL", {kDLBool, 8, 1}},
  };
  for (const ElementType& type : kTypes) {
    if (name == type.name) return &type;
  }
  return nullptr;
}

}  // namespace nnfarm
