// Files as owned handles: a descriptor and a read-only mapping.
#ifndef NNFARM_BASE_FILE_H_
#define NNFARM_BASE_FILE_H_

#include <cstdint>
#include <string>

namespace nnfarm {

// An open file descriptor.
class File {
 public:
  File() = default;
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  // Throws ffi::Error ("OSError") naming the path.
  static File OpenForRead(const std::string& path);

  int descriptor() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }
  uint64_t SizeBytes() const;
  void Close();

 private:
  int descriptor_ = -1;
};

// A whole file mapped for reading.
class MappedFile {
 public:
  MappedFile() = default;
  // Maps `size_bytes` of `file`; an empty file maps to nothing. Throws ffi::Error ("OSError").
  MappedFile(const File& file, uint64_t size_bytes, const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const uint8_t* data() const { return data_; }
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  const uint8_t* data_ = nullptr;
  uint64_t size_bytes_ = 0;
};

// The whole text of a small file. Throws ffi::Error ("OSError").
std::string ReadText(const std::string& path);

// strerror of `error` in words that are safe with threads.
std::string ErrorText(int error);

}  // namespace nnfarm

#endif  // NNFARM_BASE_FILE_H_
