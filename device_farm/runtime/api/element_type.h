// Element types of a model's inputs and outputs, in the manifest's, safetensors' and DLPack's names.
#ifndef NNFARM_API_ELEMENT_TYPE_H_
#define NNFARM_API_ELEMENT_TYPE_H_

#include <dlpack/dlpack.h>

#include <string>

namespace nnfarm {

struct ElementType {
  const char* name;              // float32
  const char* safetensors_name;  // F32
  DLDataType dtype;

  uint64_t size_bytes() const { return dtype.bits / 8U; }
};

// The type of the manifest's `name`; null when there is none.
const ElementType* FindElementType(const std::string& name);

}  // namespace nnfarm

#endif  // NNFARM_API_ELEMENT_TYPE_H_
