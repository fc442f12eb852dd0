#include "fence.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace nnsim {
namespace {

const Status kNoDescriptor = {ANEURALNETWORKS_OUT_OF_MEMORY, "no file descriptor is left"};

}  // namespace

Status Fence::Create(std::shared_ptr<Fence>* fence) {
  const int fd = eventfd(0, EFD_CLOEXEC);
  if (fd < 0) return kNoDescriptor;
  fence->reset(new Fence(fd));
  return Ok();
}

Status Fence::Import(int fd, std::shared_ptr<Fence>* fence) {
  NNSIM_REQUIRE(fd >= 0, "a negative file descriptor");
  const int copy = dup(fd);
  NNSIM_REQUIRE(copy >= 0 || errno != EBADF, "no such file descriptor");
  if (copy < 0) return kNoDescriptor;
  fence->reset(new Fence(copy));
  return Ok();
}

Fence::~Fence() { close(fd_); }

void Fence::Signal(int result) {
  result_ = result;
  const uint64_t one = 1;
  // Cannot fail: the counter of a fresh eventfd has room.
  [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof one);
}

int Fence::Wait() const {
  pollfd waited{fd_, POLLIN, 0};
  int ready = 0;
  do {
    ready = poll(&waited, 1, -1);
  } while (ready < 0 && errno == EINTR);
  return ready == 1 && (waited.revents & POLLIN) != 0 ? result_.load() : ANEURALNETWORKS_OP_FAILED;
}

Status Fence::Export(int* fd) const {
  *fd = dup(fd_);
  return *fd < 0 ? kNoDescriptor : Ok();
}

}  // namespace nnsim
