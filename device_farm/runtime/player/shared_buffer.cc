#include "player/shared_buffer.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __ANDROID__
#include <dlfcn.h>
#endif

#include <algorithm>
#include <cerrno>
#include <string>

#include "player/nnapi_error.h"

namespace nnfarm {
namespace {

constexpr size_t kAlignment = 64;

size_t Aligned(size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

[[noreturn]] void Fail(const char* what) {
  ThrowNnapiError(fallback_code::kExecuteFailed,
                  std::string("shared memory: ") + what + ": " + ErrorText(errno));
}

// A descriptor of `size` bytes that no file system shows.
File CreateMemory(size_t size) {
  constexpr char kName[] = "nnfarm-tensors";
#ifdef __ANDROID__
  // Since Android 8.0. A direct system call may end an app there.
  void* library = dlopen("libandroid.so", RTLD_NOW | RTLD_LOCAL);
  const auto create =
      library == nullptr
          ? nullptr
          : reinterpret_cast<int (*)(const char*, size_t)>(dlsym(library, "ASharedMemory_create"));
  if (create == nullptr) {
    ThrowNnapiError(fallback_code::kExecuteFailed, "shared memory: no ASharedMemory_create");
  }
  const int descriptor = create(kName, size);
  if (descriptor < 0) Fail("ASharedMemory_create");
  return File(descriptor);
#else
  // Old C libraries have no function for it.
  const auto descriptor =
      static_cast<int>(syscall(SYS_memfd_create, kName, 1U /* close on exec */));
  if (descriptor < 0) Fail("memfd_create");
  File file(descriptor);
  if (ftruncate(descriptor, static_cast<off_t>(size)) != 0) Fail("ftruncate");
  return file;
#endif
}

}  // namespace

SharedBuffer::SharedBuffer(const nnapi::Api& api, size_t size)
    : size_(size),
      file_(CreateMemory(size)),
      memory_(Make(api.ANeuralNetworksMemory_free, fallback_code::kExecuteFailed,
                   "ANeuralNetworksMemory_createFromFd", [&](nnapi::Memory** made) {
                     return api.ANeuralNetworksMemory_createFromFd(
                         size, PROT_READ | PROT_WRITE, file_.descriptor(), 0, made);
                   })) {
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_.descriptor(), 0);
  if (data == MAP_FAILED) Fail("mmap");
  data_ = static_cast<char*>(data);
}

SharedBuffer::~SharedBuffer() { munmap(data_, size_); }

size_t SharedBuffer::SizeFor(const std::vector<Binding>& tensors) {
  size_t size = 0;
  for (const Binding& tensor : tensors) size += Aligned(tensor.size);
  return std::max(size, kAlignment);  // there is no memory of nothing
}

void SharedBuffer::Place(const std::vector<Binding>& tensors, std::vector<Binding>* places) const {
  char* data = data_;
  for (size_t i = 0; i < tensors.size(); ++i) {
    (*places)[i] = {data, tensors[i].size};
    data += Aligned(tensors[i].size);
  }
}

size_t SharedBuffer::OffsetOf(const Binding& place) const {
  return static_cast<size_t>(static_cast<char*>(place.data) - data_);
}

}  // namespace nnfarm
