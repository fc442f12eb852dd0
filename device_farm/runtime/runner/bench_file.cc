#include "runner/bench_file.h"

#include <tvm/ffi/error.h>

#include <limits>

#include "api/run_error.h"
#include "api/tensor_memory.h"
#include "base/file.h"
#include "base/json_reader.h"

namespace nnfarm {
namespace {

constexpr int64_t kMostCandidates = 1000;
constexpr int64_t kMostMilliseconds = 24 * 3600 * 1000;
constexpr uint64_t kMostTensorBytes = uint64_t{1} << 31;

BenchTensor ParseTensor(const JsonValue& json) {
  BenchTensor tensor;
  for (const JsonValue& dim : json.Get("shape").Items()) {
    tensor.shape.push_back(dim.Int(0, std::numeric_limits<int32_t>::max()));
  }
  tensor.type = FindElementType(json.Get("dtype").String());
  if (tensor.type == nullptr) json.Refuse("unknown dtype " + json.Get("dtype").String());
  if (!ShapeSize(tensor.shape, tensor.type->size_bytes(), kMostTensorBytes).has_value()) {
    json.Refuse("the tensor is too large");
  }
  return tensor;
}

std::string FindLibrary(const JsonValue& json, const std::string& folder) {
  const std::string name = json.Get("path").String();
  if (name.empty() || name.find('/') != std::string::npos) {
    json.Refuse("path is not a plain file name: " + name);
  }
  const std::string path = folder + name;
  const int64_t expected = json.Get("size_bytes").Int(0, std::numeric_limits<int64_t>::max());
  const uint64_t size = File::OpenForRead(path).SizeBytes();
  if (size != static_cast<uint64_t>(expected)) {
    json.Refuse(name + " has " + std::to_string(size) + " bytes, " + std::to_string(expected) +
                " expected");
  }
  return path;
}

BenchKernel ParseKernel(const JsonValue& json, const std::string& folder) {
  BenchKernel kernel;
  kernel.signature = json.Get("signature").String();
  for (const JsonValue& tensor : json.Get("tensors").Items()) {
    kernel.tensors.push_back(ParseTensor(tensor));
  }
  kernel.library = FindLibrary(json.Get("library"), folder);
  kernel.candidate_count = static_cast<int64_t>(json.Get("candidates").Items().size());
  if (kernel.candidate_count > kMostCandidates) json.Refuse("there are too many candidates");
  return kernel;
}

}  // namespace

BenchFile BenchFile::Load(const std::string& path) {
  // With the slash; empty where the file stands in the working directory.
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  // The loader searches the system's folders for a name without a slash.
  const std::string beside = folder.empty() ? "./" : folder;
  try {
    const JsonValue json = JsonValue::Parse(ReadText(path), "the bench");
    BenchFile bench;
    bench.time_limit_ms = json.Get("time_limit_ms").Int(1, kMostMilliseconds);
    for (const JsonValue& kernel : json.Get("kernels").Items()) {
      bench.kernels.push_back(ParseKernel(kernel, beside));
    }
    return bench;
  } catch (const tvm::ffi::Error& error) {
    ThrowBadPackage(error.message());
  }
}

}  // namespace nnfarm
