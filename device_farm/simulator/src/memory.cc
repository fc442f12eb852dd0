#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

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

Mapping::~Mapping() { munmap(base_, size_ + skip_); }

}  // namespace nnsim
