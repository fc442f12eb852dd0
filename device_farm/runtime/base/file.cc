#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tvm/ffi/error.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

namespace nnfarm {
namespace {

[[noreturn]] void ThrowOsError(const std::string& path, int error) {
  throw tvm::ffi::Error("OSError", path + ": " + ErrorText(error), "");
}

}  // namespace

std::string ErrorText(int error) { return std::generic_category().message(error); }

File::File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

File::~File() { Close(); }

void File::Close() {
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
}

File File::OpenForRead(const std::string& path) {
  File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) ThrowOsError(path, errno);
  return file;
}

uint64_t File::SizeBytes() const {
  struct stat status {};
  if (fstat(descriptor_, &status) != 0) ThrowOsError("fstat", errno);
  if (!S_ISREG(status.st_mode)) ThrowOsError("not a regular file", EINVAL);
  return static_cast<uint64_t>(status.st_size);
}

MappedFile::MappedFile(const File& file, uint64_t size_bytes, const std::string& path)
    : size_bytes_(size_bytes) {
  if (size_bytes == 0) return;
  if (size_bytes > std::numeric_limits<size_t>::max()) ThrowOsError(path, EFBIG);
  void* data = mmap(nullptr, static_cast<size_t>(size_bytes), PROT_READ, MAP_SHARED,
                    file.descriptor(), 0);
  if (data == MAP_FAILED) ThrowOsError(path, errno);
  data_ = static_cast<const uint8_t*>(data);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<uint8_t*>(data_), static_cast<size_t>(size_bytes_));
}

std::string ReadText(const std::string& path) {
  const File file = File::OpenForRead(path);
  const MappedFile mapped(file, file.SizeBytes(), path);
  return std::string(reinterpret_cast<const char*>(mapped.data()),
                     static_cast<size_t>(mapped.size_bytes()));
}

}  // namespace nnfarm
