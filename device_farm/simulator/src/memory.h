// Shared memory that operands and arguments live in.
#ifndef DEVICE_FARM_SIMULATOR_SRC_MEMORY_H_
#define DEVICE_FARM_SIMULATOR_SRC_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "status.h"
#include "tensor.h"

namespace nnsim {

// One argument of one compilation, which a memory made from a descriptor may be.
struct MemoryRole {
  std::shared_ptr<const void> compilation;
  bool input;
  uint32_t index;

  bool operator==(const MemoryRole& other) const {
    return compilation == other.compilation && input == other.input && index == other.index;
  }
};

// A mapped file, or memory of the devices' own: that one has roles and no addresses for the caller.
class Mapping {
 public:
  // Maps `size` bytes from `offset`, which need not be a multiple of the page.
  static Status Create(int fd, int protect, size_t offset, size_t size,
                       std::shared_ptr<Mapping>* mapping);
  // Memory for one tensor of known shape; it has no value until an execution or a copy writes it.
  static Status Allocate(const Tensor& tensor, std::vector<MemoryRole> roles,
                         std::shared_ptr<Mapping>* mapping);
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  uint8_t* data() const { return base_ + skip_; }
  size_t size() const { return size_; }
  bool opaque() const { return !roles_.empty(); }
  bool Allows(const MemoryRole& role) const;
  const Dims& dims() const { return dims_; }
  bool initialized() const { return !opaque() || initialized_; }
  void SetInitialized(bool initialized) { initialized_ = initialized; }
  // True when [offset, offset + length) lies inside.
  bool Contains(size_t offset, size_t length) const {
    return offset <= size_ && length <= size_ - offset;
  }

 private:
  Mapping(uint8_t* base, size_t skip, size_t size) : base_(base), skip_(skip), size_(size) {}

  uint8_t* base_;
  size_t skip_;
  size_t size_;
  std::vector<MemoryRole> roles_;
  Dims dims_;
  std::atomic<bool> initialized_{false};
};

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_MEMORY_H_
