// Memory that the process and NNAPI's drivers share.
#ifndef NNFARM_PLAYER_SHARED_BUFFER_H_
#define NNFARM_PLAYER_SHARED_BUFFER_H_

#include <cstddef>
#include <vector>

#include "base/file.h"
#include "player/binding.h"
#include "player/handles.h"

namespace nnfarm {

// Must outlive the executions that use it.
class SharedBuffer {
 public:
  // Throws NnapiError (nnapi.execute_failed) where the system or NNAPI gives none.
  SharedBuffer(const nnapi::Api& api, size_t size);
  ~SharedBuffer();
  SharedBuffer(const SharedBuffer&) = delete;
  SharedBuffer& operator=(const SharedBuffer&) = delete;

  // Bytes that hold all of `tensors`.
  static size_t SizeFor(const std::vector<Binding>& tensors);
  // Gives each of `tensors`, which must fit, its place.
  void Place(const std::vector<Binding>& tensors, std::vector<Binding>* places) const;
  // Where a place begins in the memory.
  size_t OffsetOf(const Binding& place) const;

  size_t size() const { return size_; }
  const nnapi::Memory* memory() const { return memory_.get(); }

 private:
  const size_t size_;
  const File file_;
  Owned<nnapi::Memory> memory_;
  char* data_ = nullptr;
};

}  // namespace nnfarm

#endif  // NNFARM_PLAYER_SHARED_BUFFER_H_
