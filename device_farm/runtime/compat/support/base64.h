// Base64 over another stream.
#ifndef TVM_SUPPORT_BASE64_H_
#define TVM_SUPPORT_BASE64_H_

#include <tvm/ffi/extra/base64.h>
#include <tvm/support/io.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace tvm {
namespace support {

// Collects bytes and writes them encoded in Finish.
class Base64OutStream : public Stream {
 public:
  using Stream::Read;
  using Stream::Write;

  explicit Base64OutStream(Stream* out) : out_(out) {}

  size_t Read(void*, size_t) override { return 0; }

  size_t Write(const void* data, size_t size) override {
    bytes_.append(static_cast<const char*>(data), size);
    return size;
  }

  void Finish() {
    const ffi::String text = ffi::Base64Encode(TVMFFIByteArray{bytes_.data(), bytes_.size()});
    out_->Write(text.data(), text.size());
  }

 private:
  Stream* out_;
  std::string bytes_;
};

// Decodes a whole stream in InitPosition, then reads from it.
class Base64InStream : public Stream {
 public:
  using Stream::Read;
  using Stream::Write;

  explicit Base64InStream(Stream* in) : in_(in) {}

  void InitPosition() {
    std::string text;
    char buffer[4096];
    while (const size_t count = in_->Read(buffer, sizeof(buffer))) text.append(buffer, count);
    const ffi::Bytes bytes = ffi::Base64Decode(TVMFFIByteArray{text.data(), text.size()});
    bytes_.assign(bytes.data(), bytes.size());
  }

  size_t Read(void* data, size_t size) override {
    const size_t count = std::min(size, bytes_.size() - position_);
    if (count != 0) std::memcpy(data, bytes_.data() + position_, count);
    position_ += count;
    return count;
  }

  size_t Write(const void*, size_t) override { return 0; }

 private:
  Stream* in_;
  std::string bytes_;
  size_t position_ = 0;
};

}  // namespace support
}  // namespace tvm

#endif  // TVM_SUPPORT_BASE64_H_
