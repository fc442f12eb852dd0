#include "player/executor.h"

#include <cstring>
#include <string>
#include <utility>

#include "base/log.h"
#include "player/nnapi_error.h"

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

void CheckExecute(int result, const char* function) {
  nnapi::Check(result, fallback_code::kExecuteFailed, function);
}

void Copy(const Binding& from, const Binding& to) {
  // memcpy takes no null, which a tensor without elements may have.
  if (from.size > 0) std::memcpy(to.data, from.data, from.size);
}

}  // namespace

Executor::Executor(const nnapi::Api& api, const EncodedModel& encoded,
                   const PlayerSettings& settings, nnapi::Compilation* compilation,
                   bool limits_time)
    : api_(api),
      encoded_(encoded),
      settings_(settings),
      compilation_(compilation),
      limits_time_(limits_time),
      reuses_executions_(api.feature_level >= kReusableLevel && !AnyDynamic(encoded)),
      tensors_(encoded.inputs.size() + encoded.outputs.size()),
      places_(tensors_.size()) {
  RequireCalls();
  if (UsesBurst()) CreateBurst();
}

void Executor::Run(const ffi::PackedArgs& tensors) {
  Bind(tensors);
  if (settings_.buffers == Buffers::kPointer) return Execute(tensors);
  Place();
  CopyInputs();
  Execute(tensors);
  CopyOutputs();
}

void Executor::MeasureDurations(bool measure) {
  measures_durations_ = measure;
  durations_ = Durations();
  executions_.clear();  // each is asked before it starts for the first time
}

void Executor::RequireCalls() const {
  const bool old_way =
      settings_.compute == ComputeCall::kAuto || settings_.compute == ComputeCall::kAsync;
  if (!old_way && api_.feature_level < kBurstLevel) {
    ThrowNnapiError(fallback_code::kLevelTooLow,
                    "compute burst and sync need feature level 3; this device has " +
                        std::to_string(api_.feature_level));
  }
  const bool has_memory = api_.ANeuralNetworksExecution_setInputFromMemory &&
                          api_.ANeuralNetworksExecution_setOutputFromMemory;
  if (settings_.buffers == Buffers::kMemory && !has_memory) {
    ThrowNnapiError(fallback_code::kMissing,
                    "the NNAPI library lacks the functions that buffers memory needs");
  }
  const bool has_start = api_.ANeuralNetworksExecution_startCompute != nullptr ||
                         api_.ANeuralNetworksExecution_startComputeWithDependencies != nullptr;
  if (settings_.compute == ComputeCall::kAsync && !has_start) {
    ThrowNnapiError(fallback_code::kMissing, "the driver lacks what compute async needs");
  }
}

bool Executor::UsesBurst() const {
  return settings_.compute == ComputeCall::kBurst ||
         (settings_.compute == ComputeCall::kAuto && api_.feature_level >= kBurstLevel);
}

void Executor::CreateBurst() {
  nnapi::Burst* burst = nullptr;
  const int result = api_.ANeuralNetworksBurst_create(compilation_, &burst);
  if (result == nnapi::kNoError && burst != nullptr) {
    burst_.emplace(burst, api_.ANeuralNetworksBurst_free);
    return;
  }
  if (settings_.compute == ComputeCall::kBurst) {
    nnapi::Check(result, fallback_code::kCompileFailed, "ANeuralNetworksBurst_create");
    nnapi::RequireMade(burst, fallback_code::kCompileFailed, "ANeuralNetworksBurst_create");
  }
  // A burst only saves time; single computations give the same answer.
  LogLine("ANeuralNetworksBurst_create: " + nnapi::ResultName(result) + "; computing singly");
}

void Executor::Bind(const ffi::PackedArgs& tensors) {
  if (static_cast<size_t>(tensors.size()) != tensors_.size()) {
    RefuseTensor(encoded_.symbol, std::to_string(tensors_.size()) + " tensors are expected, " +
                                      std::to_string(tensors.size()) + " given");
  }
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const bool is_input = i < encoded_.inputs.size();
    const uint32_t operand =
        is_input ? encoded_.inputs[i] : encoded_.outputs[i - encoded_.inputs.size()];
    tensors_[i] =
        BindTensor(TensorAt(tensors, i), encoded_.operands[operand], encoded_.symbol, i);
  }
}

void Executor::Place() {
  const size_t needed = SharedBuffer::SizeFor(tensors_);
  if (!shared_.has_value() || shared_->size() < needed) {
    executions_.clear();  // they are bound to the memory that goes
    shared_.emplace(api_, needed);
  }
  shared_->Place(tensors_, &places_);
}

void Executor::CopyInputs() const {
  for (size_t i = 0; i < encoded_.inputs.size(); ++i) Copy(tensors_[i], places_[i]);
}

void Executor::CopyOutputs() const {
  for (size_t i = encoded_.inputs.size(); i < tensors_.size(); ++i) Copy(places_[i], tensors_[i]);
}

void Executor::Execute(const ffi::PackedArgs& tensors) {
  if (!reuses_executions_) return ComputeTimed(MakeExecution(tensors).get());
  nnapi::Execution* execution = ReusableExecution(tensors);
  try {
    ComputeTimed(execution);
  } catch (const ffi::Error&) {
    executions_.clear();  // what a failed execution may still do is not known
    throw;
  }
}

nnapi::Execution* Executor::ReusableExecution(const ffi::PackedArgs& tensors) {
  for (const BoundExecution& bound : executions_) {
    if (bound.arguments == arguments()) return bound.execution.get();
  }
  BoundExecution made{arguments(), MakeExecution(tensors)};
  if (executions_.size() < kMostExecutions) {
    executions_.push_back(std::move(made));
    return executions_.back().execution.get();
  }
  BoundExecution& replaced = executions_[oldest_execution_];
  oldest_execution_ = (oldest_execution_ + 1) % kMostExecutions;
  replaced = std::move(made);
  return replaced.execution.get();
}

Owned<nnapi::Execution> Executor::MakeExecution(const ffi::PackedArgs& tensors) {
  auto execution = Make(api_.ANeuralNetworksExecution_free, fallback_code::kExecuteFailed,
                        "ANeuralNetworksExecution_create", [&](nnapi::Execution** made) {
                          return api_.ANeuralNetworksExecution_create(compilation_, made);
                        });
  if (reuses_executions_) {
    CheckExecute(api_.ANeuralNetworksExecution_setReusable(execution.get(), true),
                 "ANeuralNetworksExecution_setReusable");
  }
  if (settings_.execute_timeout.count() > 0 && limits_time_) {
    CheckExecute(api_.ANeuralNetworksExecution_setTimeout(
                     execution.get(), static_cast<uint64_t>(settings_.execute_timeout.count())),
                 "ANeuralNetworksExecution_setTimeout");
  }
  if (measures_durations_) measures_durations_ = AskForDurations(api_, execution.get());
  for (size_t i = 0; i < encoded_.inputs.size(); ++i) {
    SetInput(execution.get(), i, TensorAt(tensors, i));
  }
  for (size_t i = 0; i < encoded_.outputs.size(); ++i) SetOutput(execution.get(), i);
  return execution;
}

void Executor::SetInput(nnapi::Execution* execution, size_t index, const DLTensor& tensor) {
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
  const nnapi::OperandType* given = operand.IsDynamic() ? &type : nullptr;
  const auto number = static_cast<int32_t>(index);
  const Binding& argument = arguments()[index];
  if (shared_.has_value()) {
    CheckExecute(api_.ANeuralNetworksExecution_setInputFromMemory(
                     execution, number, given, shared_->memory(), shared_->OffsetOf(argument),
                     argument.size),
                 "ANeuralNetworksExecution_setInputFromMemory");
  } else {
    CheckExecute(api_.ANeuralNetworksExecution_setInput(execution, number, given, argument.data,
                                                        argument.size),
                 "ANeuralNetworksExecution_setInput");
  }
}

void Executor::SetOutput(nnapi::Execution* execution, size_t index) {
  const auto number = static_cast<int32_t>(index);
  const Binding& argument = arguments()[encoded_.inputs.size() + index];
  if (shared_.has_value()) {
    CheckExecute(api_.ANeuralNetworksExecution_setOutputFromMemory(
                     execution, number, nullptr, shared_->memory(), shared_->OffsetOf(argument),
                     argument.size),
                 "ANeuralNetworksExecution_setOutputFromMemory");
  } else {
    CheckExecute(api_.ANeuralNetworksExecution_setOutput(execution, number, nullptr, argument.data,
                                                         argument.size),
                 "ANeuralNetworksExecution_setOutput");
  }
}

void Executor::ComputeTimed(nnapi::Execution* execution) {
  Compute(execution);
  if (measures_durations_) durations_ = ReadDurations(api_, execution);
}

void Executor::Compute(nnapi::Execution* execution) {
  if (burst_.has_value()) {
    CheckExecute(api_.ANeuralNetworksExecution_burstCompute(execution, burst_->get()),
                 "ANeuralNetworksExecution_burstCompute");
  } else if (settings_.compute != ComputeCall::kAsync && api_.feature_level >= kBurstLevel) {
    CheckExecute(api_.ANeuralNetworksExecution_compute(execution),
                 "ANeuralNetworksExecution_compute");
  } else {
    ComputeAsynchronously(execution);
  }
}

void Executor::ComputeAsynchronously(nnapi::Execution* execution) {
  const bool by_name = api_.ANeuralNetworksExecution_startCompute != nullptr;
  const Owned<nnapi::Event> done = Make(
      api_.ANeuralNetworksEvent_free, fallback_code::kExecuteFailed,
      by_name ? "ANeuralNetworksExecution_startCompute"
              : "ANeuralNetworksExecution_startComputeWithDependencies",
      [&](nnapi::Event** event) {
        if (by_name) return api_.ANeuralNetworksExecution_startCompute(execution, event);
        // Support-library drivers have this one only: after no events, without a time limit.
        return api_.ANeuralNetworksExecution_startComputeWithDependencies(execution, nullptr, 0, 0,
                                                                          event);
      });
  CheckExecute(api_.ANeuralNetworksEvent_wait(done.get()), "ANeuralNetworksEvent_wait");
}

}  // namespace nnfarm
