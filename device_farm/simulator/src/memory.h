// Shared memory that operands and arguments live in.
#ifndef DEVICE_FARM_SIMULATOR_SRC_MEMORY_H_
#define DEVICE_FARM_SIMULATOR_SRC_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "status.h"

namespace nnsim {

// A mapped file.
class Mapping {
 public:
  // Maps `size` bytes from `offset`, which need not be a multiple of the page.
  static Status Create(int fd, int protect, size_t offset, size_t size,
                       std::shared_ptr<Mapping>* mapping);
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  uint8_t* data() const { return base_ + skip_; }
  size_t size() const { return size_; }
  // True when [offset, offset + length) lies inside.
  bool Contains(size_t offset, size_t length) const {
    return offset <= size_ && length <= size_ - offset;
  }

 private:
  Mapping(uint8_t* base, size_t skip, size_t size) : base_(base), skip_(skip), size_(size) {}

  uint8_t* base_;
  size_t skip_;
  size_t size_;
};

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_MEMORY_H_
