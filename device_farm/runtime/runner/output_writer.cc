#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "api/run_error.h"
#include "base/json_writer.h"
#include "runner/tensor_files.h"

namespace nnfarm {
namespace {

namespace ffi = tvm::ffi;

constexpr mode_t kFileMode = 0644;
constexpr size_t kHeaderAlignment = 8;

std::vector<int64_t> ShapeOf(const ffi::Tensor& tensor) {
  return std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end());
}

void CheckType(const ffi::Tensor& tensor, const TensorSpec& spec) {
  const DLDataType& expected = spec.type->dtype;
  const DLDataType actual = tensor.dtype();
  if (actual.code != expected.code || actual.bits != expected.bits || actual.lanes != 1) {
    ThrowFailed("the output " + spec.name + " is not " + spec.type->name);
  }
}

std::string LittleEndian64(uint64_t value) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(value >> (8 * i) & 0xFFU));
  return bytes;
}

}  // namespace

OutputWriter::OutputWriter(const std::vector<TensorSpec>& specs, int64_t sample_count,
                           std::string path)
    : specs_(specs),
      sample_count_(sample_count),
      path_(std::move(path)),
      part_path_(path_ + ".part"),
      file_(open(part_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kFileMode)) {
  if (!file_.is_open()) ThrowStorage(errno);
}

OutputWriter::~OutputWriter() {
  // Still open: the run did not get through, and half a file helps nobody.
  if (file_.is_open()) unlink(part_path_.c_str());
}

void OutputWriter::Write(int64_t sample, const std::vector<ffi::Tensor>& outputs) {
  if (outputs.size() != specs_.size()) {
    ThrowFailed("the model returned " + std::to_string(outputs.size()) + " tensors, " +
                std::to_string(specs_.size()) + " expected");
  }
  if (sample == 0) WriteHeader(outputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Region& region = regions_[i];
    if (ShapeOf(outputs[i]) != region.shape) {
      ThrowFailed("the output " + specs_[i].name + " changes its shape between samples");
    }
    WriteAt(static_cast<const char*>(outputs[i].data_ptr()) + outputs[i].byte_offset(),
            region.sample_size, region.offset + static_cast<uint64_t>(sample) * region.sample_size);
  }
}

void OutputWriter::WriteHeader(const std::vector<ffi::Tensor>& outputs) {
  JsonObject header;
  uint64_t offset = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    CheckType(outputs[i], specs_[i]);
    Region region{offset, ffi::GetDataSize(*outputs[i].GetDLTensorPtr()), ShapeOf(outputs[i])};
    const uint64_t end = offset + region.sample_size * static_cast<uint64_t>(sample_count_);
    std::vector<int64_t> shape = region.shape;
    shape.insert(shape.begin(), sample_count_);
    header.Add(specs_[i].name.c_str(),
               JsonObject()
                   .Add("dtype", specs_[i].type->safetensors_name)
                   .Add("shape", shape)
                   .Add("data_offsets", std::vector<int64_t>{static_cast<int64_t>(offset),
                                                             static_cast<int64_t>(end)}));
    regions_.push_back(std::move(region));
    offset = end;
  }
  std::string text = header.Text();
  text.append((kHeaderAlignment - text.size() % kHeaderAlignment) % kHeaderAlignment, ' ');
  text.insert(0, LittleEndian64(text.size()));
  WriteAt(text.data(), text.size(), 0);
  for (Region& region : regions_) region.offset += text.size();
}

void OutputWriter::WriteAt(const void* data, uint64_t size, uint64_t offset) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = pwrite(file_.descriptor(), bytes, static_cast<size_t>(size),
                                   static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) ThrowStorage(written == 0 ? ENOSPC : errno);
    bytes += written;
    offset += static_cast<uint64_t>(written);
    size -= static_cast<uint64_t>(written);
  }
}

void OutputWriter::Finish() {
  // Delayed allocation tells of a full disk only here.
  if (fsync(file_.descriptor()) != 0 && errno != EINVAL) ThrowStorage(errno);
  if (std::rename(part_path_.c_str(), path_.c_str()) != 0) ThrowStorage(errno);
  file_.Close();
}

void OutputWriter::ThrowStorage(int error) const {
  throw RunError(ExitCode::kStorageFull, "runner.storage_full",
                    path_ + ": " + ErrorText(error));
}

}  // namespace nnfarm
