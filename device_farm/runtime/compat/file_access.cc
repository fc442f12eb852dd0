// What tvm_runtime's file_utils.cc is needed for on a phone: an executable as a file of its own. The
// rest of that file keeps parameters and metadata, which packages have no use for, and is a sixth of
// the library.
#include <cstdio>
#include <memory>
#include <string>

#include <tvm/ffi/error.h>
#include <tvm/runtime/base.h>

namespace tvm {
namespace runtime {
namespace {

using Stream = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

Stream Open(const std::string& path, const char* mode) {
  Stream stream(std::fopen(path.c_str(), mode), std::fclose);
  if (stream == nullptr) TVM_FFI_THROW(OSError) << "Cannot open " << path;
  return stream;
}

}  // namespace

TVM_RUNTIME_DLL void LoadBinaryFromFile(const std::string& file_name, std::string* data) {
  const Stream stream = Open(file_name, "rb");
  data->clear();
  char block[4096];
  while (const size_t count = std::fread(block, 1, sizeof(block), stream.get())) {
    data->append(block, count);
  }
  if (std::ferror(stream.get()) != 0) TVM_FFI_THROW(OSError) << "Cannot read " << file_name;
}

TVM_RUNTIME_DLL void SaveBinaryToFile(const std::string& file_name, const std::string& data) {
  Stream stream = Open(file_name, "wb");
  const bool written = std::fwrite(data.data(), 1, data.size(), stream.get()) == data.size();
  if (std::fclose(stream.release()) != 0 || !written) {
    TVM_FFI_THROW(OSError) << "Cannot write " << file_name;
  }
}

}  // namespace runtime
}  // namespace tvm
