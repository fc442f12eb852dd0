#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace nnsim {

Status Mapping::Create(int fd, int protect, size_t offset, size_t size,
                       std::shared_ptr<Mapping>* mapping) {
  NNSIM_REQUIRE(size > 0, "a memory of no bytes");
  NNSIM_REQUIRE(fd >= 0, "a negative file descriptor");
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t skip = offset % page;
  NNSIM_REQUIRE(size <= SIZE_MAX - skip, "a memory larger than the address space");
  const off_t start = static_cast<off_t>(offset - skip);
  void* base = mmap(nullptr, size + skip, protect, MAP_SHARED, fd, start);
  if (base == MAP_FAILED) return {ANEURALNETWORKS_UNMAPPABLE, "mmap failed"};
  mapping->reset(new Mapping(static_cast<uint8_t*>(base), skip, size));
  return Ok();
}

Status Mapping::Allocate(const Tensor& tensor, std::vector<MemoryRole> roles,
                         std::shared_ptr<Mapping>* mapping) {
  if (!tensor.fully_known()) {
    return {ANEURALNETWORKS_OP_FAILED, "the shape is not known: its devices cannot allocate it"};
  }
  const size_t size = tensor.size_bytes();
  // An empty tensor still needs an address.
  const size_t mapped = std::max<size_t>(size, 1);
  void* base =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return {ANEURALNETWORKS_OUT_OF_MEMORY, "mmap failed"};
  mapping->reset(new Mapping(static_cast<uint8_t*>(base), 0, size));
  (*mapping)->roles_ = std::move(roles);
  (*mapping)->dims_ = tensor.dims;
  return Ok();
}

bool Mapping::Allows(const MemoryRole& role) const {
  return std::find(roles_.begin(), roles_.end(), role) != roles_.end();
}

Mapping::~Mapping() { munmap(base_, std::max<size_t>(size_ + skip_, 1)); }

}  // namespace nnsim
