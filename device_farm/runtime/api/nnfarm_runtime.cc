#include "api/nnfarm_runtime.h"

#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "api/model.h"
#include "api/model_options.h"
#include "api/run_error.h"
#include "api/tensor_memory.h"

struct nnfarm_options {
  nnfarm::ModelOptions options;
};

struct nnfarm_model {
  nnfarm_model(const char* folder, const nnfarm::ModelOptions& options) : model(folder, options) {}

  nnfarm::Model model;
  std::string explanation;
};

namespace {

using nnfarm::ThrowUsage;

std::string& LastError() {
  static thread_local std::string text;
  return text;
}

nnfarm_status Fail(nnfarm_status status, const std::string& text) noexcept {
  try {
    LastError() = text;
  } catch (const std::bad_alloc&) {
    LastError().clear();
  }
  return status;
}

// Runs `work`, and turns what it throws into a status.
template <typename Work>
nnfarm_status Guard(Work work) noexcept {
  try {
    work();
    return NNFARM_OK;
  } catch (const nnfarm::RunError& error) {
    return Fail(static_cast<nnfarm_status>(error.exit_code()),
                error.code() + ": " + error.what());
  } catch (const tvm::ffi::Error& error) {
    return Fail(NNFARM_FAILED, "runner.failed: " + error.kind() + ": " + error.message());
  } catch (const std::exception& error) {
    return Fail(NNFARM_FAILED, std::string("runner.failed: ") + error.what());
  }
}

void Require(bool given, const char* argument) {
  if (!given) ThrowUsage(std::string(argument) + " is null");
}

void RequireIndex(size_t index, size_t count) {
  if (index >= count) {
    ThrowUsage("index " + std::to_string(index) + " of " + std::to_string(count));
  }
}

nnfarm_type TypeOf(const nnfarm::ElementType& type) {
  switch (type.dtype.code) {
    case kDLBool: return NNFARM_BOOL;
    case kDLUInt: return NNFARM_UINT8;
    case kDLFloat:
      return type.dtype.bits == 32 ? NNFARM_FLOAT32
             : type.dtype.bits == 16 ? NNFARM_FLOAT16 : NNFARM_FLOAT64;
    default:
      return type.dtype.bits == 8    ? NNFARM_INT8
             : type.dtype.bits == 16 ? NNFARM_INT16
             : type.dtype.bits == 32 ? NNFARM_INT32 : NNFARM_INT64;
  }
}

void Describe(const std::vector<nnfarm::TensorSpec>& specs, size_t index,
              nnfarm_tensor_info* info) {
  Require(info != nullptr, "info");
  RequireIndex(index, specs.size());
  const nnfarm::TensorSpec& spec = specs[index];
  *info = {spec.name.c_str(), TypeOf(*spec.type), spec.shape.size(), spec.shape.data()};
}

const tvm::ffi::Tensor& Prepare(nnfarm_model* model, size_t index, const int64_t* dims,
                                size_t rank) {
  Require(model != nullptr, "model");
  const std::vector<nnfarm::TensorSpec>& specs = model->model.package().inputs;
  RequireIndex(index, specs.size());
  if (dims == nullptr && rank != 0) ThrowUsage("dims is null, rank is not 0");
  return model->model.PrepareInput(
      index, dims == nullptr ? specs[index].shape : std::vector<int64_t>(dims, dims + rank));
}

size_t SizeOf(const tvm::ffi::Tensor& tensor) {
  return static_cast<size_t>(tvm::ffi::GetDataSize(*tensor.GetDLTensorPtr()));
}

}  // namespace

extern "C" {

int32_t nnfarm_api_version(void) { return NNFARM_API_VERSION; }

const char* nnfarm_version(void) { return NNFARM_VERSION; }

const char* nnfarm_last_error(void) { return LastError().c_str(); }

nnfarm_status nnfarm_options_create(nnfarm_options** options) {
  return Guard([&] {
    Require(options != nullptr, "options");
    *options = nullptr;
    *options = new nnfarm_options();
  });
}

nnfarm_status nnfarm_options_set(nnfarm_options* options, const char* name, const char* value) {
  return Guard([&] {
    Require(options != nullptr, "options");
    Require(name != nullptr, "name");
    Require(value != nullptr, "value");
    options->options.Set(name, value);
  });
}

void nnfarm_options_free(nnfarm_options* options) { delete options; }

nnfarm_status nnfarm_model_open(const char* folder, const nnfarm_options* options,
                                nnfarm_model** model) {
  return Guard([&] {
    Require(model != nullptr, "model");
    *model = nullptr;
    Require(folder != nullptr, "folder");
    *model = new nnfarm_model(folder,
                              options != nullptr ? options->options : nnfarm::ModelOptions());
  });
}

void nnfarm_model_close(nnfarm_model* model) { delete model; }

size_t nnfarm_model_input_count(const nnfarm_model* model) {
  return model != nullptr ? model->model.package().inputs.size() : 0;
}

size_t nnfarm_model_output_count(const nnfarm_model* model) {
  return model != nullptr ? model->model.package().outputs.size() : 0;
}

nnfarm_status nnfarm_model_input_info(const nnfarm_model* model, size_t index,
                                      nnfarm_tensor_info* info) {
  return Guard([&] {
    Require(model != nullptr, "model");
    Describe(model->model.package().inputs, index, info);
  });
}

nnfarm_status nnfarm_model_output_info(const nnfarm_model* model, size_t index,
                                       nnfarm_tensor_info* info) {
  return Guard([&] {
    Require(model != nullptr, "model");
    Describe(model->model.package().outputs, index, info);
  });
}

nnfarm_status nnfarm_model_set_input(nnfarm_model* model, size_t index, const void* data,
                                     size_t size_bytes, const int64_t* dims, size_t rank) {
  return Guard([&] {
    const tvm::ffi::Tensor& tensor = Prepare(model, index, dims, rank);
    if (SizeOf(tensor) != size_bytes) {
      nnfarm::ThrowBadInputs(std::to_string(size_bytes) + " bytes given, " +
                             std::to_string(SizeOf(tensor)) + " expected");
    }
    if (size_bytes == 0) return;
    Require(data != nullptr, "data");
    std::memcpy(tensor.data_ptr(), data, size_bytes);
  });
}

nnfarm_status nnfarm_model_map_input(nnfarm_model* model, size_t index, const int64_t* dims,
                                     size_t rank, void** data, size_t* size_bytes) {
  return Guard([&] {
    Require(data != nullptr, "data");
    Require(size_bytes != nullptr, "size_bytes");
    const tvm::ffi::Tensor& tensor = Prepare(model, index, dims, rank);
    *data = tensor.data_ptr();
    *size_bytes = SizeOf(tensor);
  });
}

nnfarm_status nnfarm_model_run(nnfarm_model* model) {
  return Guard([&] {
    Require(model != nullptr, "model");
    model->model.Run();
  });
}

nnfarm_status nnfarm_model_get_output(const nnfarm_model* model, size_t index,
                                      nnfarm_tensor* tensor) {
  return Guard([&] {
    Require(model != nullptr, "model");
    Require(tensor != nullptr, "tensor");
    const std::vector<tvm::ffi::Tensor>& outputs = model->model.outputs();
    RequireIndex(index, outputs.size());
    const tvm::ffi::Tensor& output = outputs[index];
    *tensor = {static_cast<const char*>(output.data_ptr()) + output.byte_offset(), SizeOf(output),
               output.shape().size(), output.shape().data()};
  });
}

nnfarm_status nnfarm_model_explain(nnfarm_model* model, const char** json) {
  return Guard([&] {
    Require(model != nullptr, "model");
    Require(json != nullptr, "json");
    model->explanation = model->model.Explain();
    *json = model->explanation.c_str();
  });
}

}  // extern "C"
