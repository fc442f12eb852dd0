// What a memory of the devices' own will be used for, step by step.
#ifndef DEVICE_FARM_SIMULATOR_SRC_MEMORY_DESC_H_
#define DEVICE_FARM_SIMULATOR_SRC_MEMORY_DESC_H_

#include <memory>
#include <vector>

#include "compilation.h"
#include "memory.h"

namespace nnsim {

class MemoryDesc {
 public:
  Status AddRole(std::shared_ptr<const Compilation> compilation, bool input, uint32_t index,
                 float frequency);
  Status SetDimensions(const Dims& dims);
  Status Finish();
  Status Allocate(std::shared_ptr<Mapping>* mapping) const;

 private:
  Status CheckOpen() const;

  bool finished_ = false;
  std::vector<MemoryRole> roles_;
  Tensor tensor_;  // of all roles; `dims` are the strictest known so far
  Dims wanted_;    // by SetDimensions, before the first role or after
};

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_MEMORY_DESC_H_
