// Streams over bytes in memory.
#ifndef TVM_SUPPORT_BYTES_IO_H_
#define TVM_SUPPORT_BYTES_IO_H_

#include <tvm/ffi/string.h>
#include <tvm/support/io.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace tvm {
namespace support {

// Reads bytes that outlive it.
class BytesInStream : public Stream {
 public:
  using Stream::Read;
  using Stream::Write;

  explicit BytesInStream(const ffi::Bytes& bytes) : data_(bytes.data()), size_(bytes.size()) {}
  explicit BytesInStream(const std::string& bytes) : data_(bytes.data()), size_(bytes.size()) {}

  size_t Read(void* data, size_t size) override {
    const size_t count = std::min(size, size_ - position_);
    if (count != 0) std::memcpy(data, data_ + position_, count);
    position_ += count;
    return count;
  }

  size_t Write(const void*, size_t) override { return 0; }

 private:
  const char* data_;
  size_t size_;
  size_t position_ = 0;
};

// Appends to a string that outlives it.
class BytesOutStream : public Stream {
 public:
  using Stream::Read;
  using Stream::Write;

  explicit BytesOutStream(std::string* bytes) : bytes_(bytes) {}

  size_t Read(void*, size_t) override { return 0; }

  size_t Write(const void* data, size_t size) override {
    bytes_->append(static_cast<const char*>(data), size);
    return size;
  }

 private:
  std::string* bytes_;
};

}  // namespace support
}  // namespace tvm

#endif  // TVM_SUPPORT_BYTES_IO_H_
