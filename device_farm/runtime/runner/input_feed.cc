#include <tvm/ffi/error.h>

#include <cstring>
#include <limits>
#include <map>

#include "api/run_error.h"
#include "api/tensor_memory.h"
#include "base/json_reader.h"
#include "runner/tensor_files.h"

namespace nnfarm {
namespace {

namespace ffi = tvm::ffi;

constexpr uint64_t kHeaderLengthSize = 8;
constexpr uint64_t kMaxHeaderSize = 100000000;  // the safetensors format's own limit
constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();

uint64_t SizeOf(const std::vector<int64_t>& shape, uint64_t element_size, uint64_t limit,
                const std::string& name) {
  const auto size = ShapeSize(shape, element_size, limit);
  if (!size.has_value()) ThrowBadInputs(name + ": the shape is too large");
  return *size;
}

struct FileTensor {
  std::string dtype;
  std::vector<int64_t> shape;
  const uint8_t* data;
  uint64_t size;
};

FileTensor ParseTensor(const JsonValue& json, const uint8_t* data, uint64_t data_size) {
  FileTensor tensor;
  tensor.dtype = json.Get("dtype").String();
  for (const JsonValue& dim : json.Get("shape").Items()) {
    tensor.shape.push_back(dim.Int(0, kMaxInt64));
  }
  const std::vector<JsonValue> offsets = json.Get("data_offsets").Items();
  if (offsets.size() != 2) json.Refuse("data_offsets are two numbers");
  const auto begin = static_cast<uint64_t>(offsets[0].Int(0, kMaxInt64));
  const auto end = static_cast<uint64_t>(offsets[1].Int(0, kMaxInt64));
  if (begin > end || end > data_size) json.Refuse("data_offsets are outside the file");
  tensor.data = data + begin;
  tensor.size = end - begin;
  return tensor;
}

std::map<std::string, FileTensor> ParseSafetensors(const MappedFile& file) {
  if (file.size_bytes() < kHeaderLengthSize) ThrowBadInputs("the inputs are no safetensors file");
  uint64_t header_size = 0;
  for (uint64_t i = 0; i < kHeaderLengthSize; ++i) {
    header_size |= static_cast<uint64_t>(file.data()[i]) << (8 * i);
  }
  const uint64_t rest = file.size_bytes() - kHeaderLengthSize;
  if (header_size > rest || header_size > kMaxHeaderSize) {
    ThrowBadInputs("the inputs are no safetensors file");
  }
  const uint8_t* header = file.data() + kHeaderLengthSize;
  const JsonValue json = JsonValue::Parse(
      std::string_view(reinterpret_cast<const char*>(header), static_cast<size_t>(header_size)),
      "inputs");
  std::map<std::string, FileTensor> tensors;
  for (const std::string& name : json.Keys()) {
    if (name == "__metadata__") continue;
    tensors.emplace(name, ParseTensor(json.Get(name.c_str()), header + header_size,
                                      rest - header_size));
  }
  return tensors;
}

// The shape of one sample; checks the tensor against the manifest.
std::vector<int64_t> SampleShape(const TensorSpec& spec, const FileTensor& tensor) {
  if (tensor.dtype != spec.type->safetensors_name) {
    ThrowBadInputs(spec.name + ": " + tensor.dtype + ", " + spec.type->safetensors_name +
                   " expected");
  }
  const bool rank_fits = tensor.shape.size() == spec.shape.size() + 1;
  if (!rank_fits) ThrowBadInputs(spec.name + ": the shape is not [samples, *input shape]");
  std::vector<int64_t> shape(tensor.shape.begin() + 1, tensor.shape.end());
  for (size_t i = 0; i < shape.size(); ++i) {
    if (spec.shape[i] != -1 && spec.shape[i] != shape[i]) {
      ThrowBadInputs(spec.name + ": dimension " + std::to_string(i + 1) + " is " +
                     std::to_string(shape[i]) + ", " + std::to_string(spec.shape[i]) +
                     " expected");
    }
  }
  if (SizeOf(tensor.shape, spec.type->size_bytes(), tensor.size, spec.name) != tensor.size) {
    ThrowBadInputs(spec.name + ": the shape does not match the data");
  }
  return shape;
}

}  // namespace

InputFeed::InputFeed(const std::vector<TensorSpec>& specs, const std::string& path) {
  if (path.empty()) {
    for (const TensorSpec& spec : specs) AddZeros(spec);
    return;
  }
  std::map<std::string, FileTensor> tensors;
  try {
    const File file = File::OpenForRead(path);
    mapped_ = MappedFile(file, file.SizeBytes(), path);
    tensors = ParseSafetensors(mapped_);
  } catch (const ffi::Error& error) {
    ThrowBadInputs(error.message());
  }
  for (const TensorSpec& spec : specs) {
    const auto found = tensors.find(spec.name);
    if (found == tensors.end()) ThrowBadInputs("the inputs have no tensor " + spec.name);
    const FileTensor& tensor = found->second;
    const std::vector<int64_t> shape = SampleShape(spec, tensor);
    const int64_t samples = tensor.shape[0];
    if (samples == 0) ThrowBadInputs(spec.name + ": no samples");
    if (!sources_.empty() && samples != sample_count_) {
      ThrowBadInputs(spec.name + ": " + std::to_string(samples) + " samples, " +
                     std::to_string(sample_count_) + " expected");
    }
    sample_count_ = samples;
    sources_.push_back({tensor.data, tensor.size / static_cast<uint64_t>(samples)});
    tensors_.push_back(AllocateTensor(shape, spec.type->dtype));
  }
}

void InputFeed::AddZeros(const TensorSpec& spec) {
  for (const int64_t dim : spec.shape) {
    if (dim < 0) ThrowBadInputs(spec.name + " has a dimension known at run time: give --inputs");
  }
  const uint64_t size =
      SizeOf(spec.shape, spec.type->size_bytes(), std::numeric_limits<size_t>::max(), spec.name);
  tensors_.push_back(AllocateTensor(spec.shape, spec.type->dtype));
  sources_.push_back({nullptr, size});
}

void InputFeed::Load(int64_t index) {
  for (size_t i = 0; i < sources_.size(); ++i) {
    const auto size = static_cast<size_t>(sources_[i].sample_size);
    if (size == 0) continue;
    if (sources_[i].data == nullptr) {
      std::memset(tensors_[i].data_ptr(), 0, size);
    } else {
      std::memcpy(tensors_[i].data_ptr(), sources_[i].data + static_cast<size_t>(index) * size,
                  size);
    }
  }
}

}  // namespace nnfarm
