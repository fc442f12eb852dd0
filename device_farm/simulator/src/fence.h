// A moment that others wait for: the end of an execution, or a file descriptor of the caller.
#ifndef DEVICE_FARM_SIMULATOR_SRC_FENCE_H_
#define DEVICE_FARM_SIMULATOR_SRC_FENCE_H_

#include <atomic>
#include <memory>

#include "status.h"

namespace nnsim {

// Linux outside of Android makes no sync fences, so an eventfd stands in: like a sync fence it
// becomes readable when it is signalled and stays so.
class Fence {
 public:
  static Status Create(std::shared_ptr<Fence>* fence);
  // Waits for a duplicate of `fd`: a sync fence, an eventfd or a pipe.
  static Status Import(int fd, std::shared_ptr<Fence>* fence);
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;
  ~Fence();

  void Signal(int result);
  // The result of Signal; OP_FAILED when the descriptor is in error.
  int Wait() const;
  // A duplicate of the descriptor, which the caller closes.
  Status Export(int* fd) const;

 private:
  explicit Fence(int fd) : fd_(fd) {}

  int fd_;
  std::atomic<int> result_{ANEURALNETWORKS_NO_ERROR};
};

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_FENCE_H_
