// Inputs and outputs as safetensors files, sample by sample: memory stays bounded by one sample.
#ifndef NNFARM_RUNNER_TENSOR_FILES_H_
#define NNFARM_RUNNER_TENSOR_FILES_H_

#include <tvm/ffi/container/tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "api/package.h"
#include "base/file.h"

namespace nnfarm {

// Feeds a model's inputs from a file, or with zeros.
class InputFeed {
 public:
  // `path` empty: one sample of zeros. Throws RunError (bad inputs).
  InputFeed(const std::vector<TensorSpec>& specs, const std::string& path);

  int64_t sample_count() const { return sample_count_; }
  // The tensors every sample is put into; the same ones for the whole run.
  const std::vector<tvm::ffi::Tensor>& tensors() const { return tensors_; }
  // Puts sample `index` into the tensors.
  void Load(int64_t index);

 private:
  struct Source {
    const uint8_t* data;  // null: zeros
    uint64_t sample_size;
  };

  void AddZeros(const TensorSpec& spec);

  MappedFile mapped_;
  int64_t sample_count_ = 1;
  std::vector<Source> sources_;
  std::vector<tvm::ffi::Tensor> tensors_;
};

// Writes outputs of all samples. The file gets its name when it is complete.
class OutputWriter {
 public:
  OutputWriter(const std::vector<TensorSpec>& specs, int64_t sample_count, std::string path);
  ~OutputWriter();
  OutputWriter(const OutputWriter&) = delete;
  OutputWriter& operator=(const OutputWriter&) = delete;

  // The first sample fixes the shapes. Throws RunError (storage full; failed when a later
  // sample has another shape).
  void Write(int64_t sample, const std::vector<tvm::ffi::Tensor>& outputs);
  void Finish();

 private:
  struct Region {
    uint64_t offset;
    uint64_t sample_size;
    std::vector<int64_t> shape;
  };

  void WriteHeader(const std::vector<tvm::ffi::Tensor>& outputs);
  void WriteAt(const void* data, uint64_t size, uint64_t offset);
  [[noreturn]] void ThrowStorage(int error) const;

  const std::vector<TensorSpec>& specs_;
  const int64_t sample_count_;
  const std::string path_;
  const std::string part_path_;
  File file_;
  std::vector<Region> regions_;
};

}  // namespace nnfarm

#endif  // NNFARM_RUNNER_TENSOR_FILES_H_
