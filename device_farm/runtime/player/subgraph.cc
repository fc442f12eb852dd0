#include "player/subgraph.h"

#include <chrono>
#include <utility>

#include "base/log.h"
#include "player/compilation.h"
#include "player/model_builder.h"
#include "player/nnapi_error.h"
#include "player/nnapi_library.h"

namespace nnfarm {
namespace {

namespace ffi = tvm::ffi;

constexpr int kBurstLevel = 3;
constexpr int kReusableLevel = 5;
// TVM's machine keeps the last result while it computes the next, so two sets of buffers take turns.
constexpr size_t kMostExecutions = 4;

bool AnyDynamic(const EncodedModel& encoded) {
  for (const auto* indexes : {&encoded.inputs, &encoded.outputs}) {
    for (const uint32_t index : *indexes) {
      if (encoded.operands[index].IsDynamic()) return true;
    }
  }
  return false;
}

EncodedModel WithPrecision(EncodedModel encoded, const std::optional<bool>& relaxed) {
  encoded.relaxed = relaxed.value_or(encoded.relaxed);
  return encoded;
}

}  // namespace

Subgraph::Subgraph(EncodedModel encoded, PlayerSettings settings)
    : encoded_(WithPrecision(std::move(encoded), settings.relaxed)),
      settings_(std::move(settings)),
      has_dynamic_operand_(AnyDynamic(encoded_)),
      bindings_(encoded_.inputs.size() + encoded_.outputs.size()) {}

template <typename Action>
void Subgraph::Naming(Action action) {
  try {
    action();
  } catch (const ffi::Error& error) {
    if (error.kind() != kNnapiErrorKind) throw;
    throw ffi::Error(kNnapiErrorKind, error.message() + " [" + encoded_.symbol + "]", "");
  }
}

void Subgraph::Compile() {
  const std::lock_guard<std::mutex> lock(mutex_);
  Naming([this] { CompileLocked(); });
}

void Subgraph::Run(ffi::PackedArgs tensors) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Naming([&] {
    CompileLocked();
    Bind(tensors);
    if (!CanReuseExecutions()) return Compute(MakeExecution(tensors).get());
    nnapi::Execution* execution = ReusableExecution(tensors);
    try {
      Compute(execution);
    } catch (const ffi::Error&) {
      executions_.clear();  // what a failed execution may still do is not known
      throw;
    }
  });
}

bool Subgraph::CanReuseExecutions() const {
  return api_->feature_level >= kReusableLevel && !has_dynamic_operand_;
}

nnapi::Execution* Subgraph::ReusableExecution(const ffi::PackedArgs& tensors) {
  for (const BoundExecution& bound : executions_) {
    if (bound.bindings == bindings_) return bound.execution.get();
  }
  BoundExecution made{bindings_, MakeExecution(tensors)};
  if (executions_.size() < kMostExecutions) {
    executions_.push_back(std::move(made));
    return executions_.back().execution.get();
  }
  BoundExecution& replaced = executions_[oldest_execution_];
  oldest_execution_ = (oldest_execution_ + 1) % kMostExecutions;
  replaced = std::move(made);
  return replaced.execution.get();
}

void Subgraph::CompileLocked() {
  if (compilation_.has_value()) return;
  const auto start = std::chrono::steady_clock::now();
  model_.reset();  // of an attempt that failed; it must go before its weights
  api_ = NnapiLibrary(settings_.library);
  if (encoded_.level > api_->feature_level) {
    ThrowNnapiError(fallback_code::kLevelTooLow,
                    "the model needs feature level " + std::to_string(encoded_.level) +
                        "; this device has " + std::to_string(api_->feature_level));
  }
  if (encoded_.weights.has_value()) {
    weights_.emplace(*api_, settings_.package_dir, *encoded_.weights);
  }
  try {
    BuildAndCompile();
  } catch (const ffi::Error& error) {
    if (!MayRefuseWeights(error)) throw;
    LogLine(error.message() + "; trying again without " + encoded_.weights->file +
            " as shared memory");
    model_.reset();
    weights_->UsePointers();
    BuildAndCompile();
  }
  const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
  compile_us_ = spent.count();
}

// Drivers learn only from a compilation whether they may read the file behind the memory.
bool Subgraph::MayRefuseWeights(const ffi::Error& error) const {
  const std::string code = std::string(fallback_code::kCompileFailed) + ": ";
  return weights_.has_value() && weights_->is_nnapi_memory() &&
         error.kind() == kNnapiErrorKind && error.message().rfind(code, 0) == 0;
}

void Subgraph::BuildAndCompile() {
  RequireExtensions(*api_, encoded_, settings_.device);
  model_.emplace(BuildModel(*api_, encoded_, weights_.has_value() ? &*weights_ : nullptr));
  devices_ = ChooseDevices(*api_, model_->get(), encoded_, settings_.device);
  CreateCompilation();
}

void Subgraph::CreateCompilation() {
  RequireComputeCall();
  Owned<nnapi::Compilation> compilation =
      CompileModel(*api_, model_->get(), encoded_, devices_, settings_);
  burst_.reset();
  if (UsesBurst()) CreateBurst(compilation.get());
  compilation_.emplace(std::move(compilation));
}

void Subgraph::RequireComputeCall() const {
  const bool old_way =
      settings_.compute == ComputeCall::kAuto || settings_.compute == ComputeCall::kAsync;
  if (old_way || api_->feature_level >= kBurstLevel) return;
  ThrowNnapiError(fallback_code::kLevelTooLow,
                  "compute burst and sync need feature level 3; this device has " +
                      std::to_string(api_->feature_level));
}

bool Subgraph::UsesBurst() const {
  return settings_.compute == ComputeCall::kBurst ||
         (settings_.compute == ComputeCall::kAuto && api_->feature_level >= kBurstLevel);
}

void Subgraph::CreateBurst(nnapi::Compilation* compilation) {
  nnapi::Burst* burst = nullptr;
  const int result = api_->ANeuralNetworksBurst_create(compilation, &burst);
  if (result == nnapi::kNoError) {
    burst_.emplace(burst, api_->ANeuralNetworksBurst_free);
    return;
  }
  if (settings_.compute == ComputeCall::kBurst) {
    nnapi::Check(result, fallback_code::kCompileFailed, "ANeuralNetworksBurst_create");
  }
  // A burst only saves time; single computations give the same answer.
  LogLine("ANeuralNetworksBurst_create: " + nnapi::ResultName(result) + "; computing singly");
}

void Subgraph::Bind(const ffi::PackedArgs& tensors) {
  if (static_cast<size_t>(tensors.size()) != bindings_.size()) {
    RefuseTensor(encoded_.symbol, std::to_string(bindings_.size()) + " tensors are expected, " +
                                      std::to_string(tensors.size()) + " given");
  }
  for (size_t i = 0; i < bindings_.size(); ++i) {
    const bool is_input = i < encoded_.inputs.size();
    const uint32_t operand =
        is_input ? encoded_.inputs[i] : encoded_.outputs[i - encoded_.inputs.size()];
    bindings_[i] =
        BindTensor(TensorAt(tensors, i), encoded_.operands[operand], encoded_.symbol, i);
  }
}

Owned<nnapi::Execution> Subgraph::MakeExecution(const ffi::PackedArgs& tensors) {
  auto execution = Make(api_->ANeuralNetworksExecution_free, fallback_code::kExecuteFailed,
                        "ANeuralNetworksExecution_create", [&](nnapi::Execution** made) {
                          return api_->ANeuralNetworksExecution_create(compilation_->get(), made);
                        });
  if (CanReuseExecutions()) {
    nnapi::Check(api_->ANeuralNetworksExecution_setReusable(execution.get(), true),
                 fallback_code::kExecuteFailed, "ANeuralNetworksExecution_setReusable");
  }
  if (settings_.execute_timeout.count() > 0 && CanLimitTime(*api_, devices_)) {
    nnapi::Check(api_->ANeuralNetworksExecution_setTimeout(
                     execution.get(), static_cast<uint64_t>(settings_.execute_timeout.count())),
                 fallback_code::kExecuteFailed, "ANeuralNetworksExecution_setTimeout");
  }
  for (size_t i = 0; i < encoded_.inputs.size(); ++i) {
    SetInput(execution.get(), i, TensorAt(tensors, i));
  }
  for (size_t i = 0; i < encoded_.outputs.size(); ++i) {
    const Binding& binding = bindings_[encoded_.inputs.size() + i];
    nnapi::Check(
        api_->ANeuralNetworksExecution_setOutput(execution.get(), static_cast<int32_t>(i), nullptr,
                                                 binding.data, binding.size),
        fallback_code::kExecuteFailed, "ANeuralNetworksExecution_setOutput");
  }
  return execution;
}

void Subgraph::SetInput(nnapi::Execution* execution, size_t index, const DLTensor& tensor) {
  const EncodedOperand& operand = encoded_.operands[encoded_.inputs[index]];
  nnapi::OperandType type{};
  if (operand.IsDynamic()) {
    if (!operand.extension.empty()) {
      RefuseTensor(encoded_.symbol, "an extension operand of a shape known only at run time");
    }
    shape_.assign(tensor.shape, tensor.shape + tensor.ndim);
    type = {operand.type, static_cast<uint32_t>(shape_.size()), shape_.data(), operand.scale,
            operand.zero_point};
  }
  nnapi::Check(api_->ANeuralNetworksExecution_setInput(
                   execution, static_cast<int32_t>(index), operand.IsDynamic() ? &type : nullptr,
                   bindings_[index].data, bindings_[index].size),
               fallback_code::kExecuteFailed, "ANeuralNetworksExecution_setInput");
}

void Subgraph::Compute(nnapi::Execution* execution) {
  const auto check = [](int result, const char* function) {
    nnapi::Check(result, fallback_code::kExecuteFailed, function);
  };
  if (burst_.has_value()) {
    check(api_->ANeuralNetworksExecution_burstCompute(execution, burst_->get()),
          "ANeuralNetworksExecution_burstCompute");
  } else if (settings_.compute != ComputeCall::kAsync && api_->feature_level >= 3) {
    check(api_->ANeuralNetworksExecution_compute(execution), "ANeuralNetworksExecution_compute");
  } else {
    const Owned<nnapi::Event> done =
        Make(api_->ANeuralNetworksEvent_free, fallback_code::kExecuteFailed,
             "ANeuralNetworksExecution_startCompute", [&](nnapi::Event** event) {
               return api_->ANeuralNetworksExecution_startCompute(execution, event);
             });
    check(api_->ANeuralNetworksEvent_wait(done.get()), "ANeuralNetworksEvent_wait");
  }
}

JsonObject Subgraph::Describe() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  JsonObject description;
  description.Add("symbol", encoded_.symbol).Add("content", HexText(encoded_.content));
  if (!compilation_.has_value()) return description;
  std::vector<std::string> names;
  std::vector<int64_t> supported;
  for (const ChosenDevice& device : devices_) {
    names.push_back(device.info.name);
    supported.push_back(device.supported_operations);
  }
  return description.Add("compile_us", compile_us_)
      .Add("operations", static_cast<int64_t>(encoded_.operations.size()))
      .Add("devices", names)
      .Add("supported_operations", supported);
}

}  // namespace nnfarm
