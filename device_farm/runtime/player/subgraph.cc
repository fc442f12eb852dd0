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

EncodedModel WithPrecision(EncodedModel encoded, const std::optional<bool>& relaxed) {
  encoded.relaxed = relaxed.value_or(encoded.relaxed);
  return encoded;
}

}  // namespace

Subgraph::Subgraph(EncodedModel encoded, PlayerSettings settings)
    : encoded_(WithPrecision(std::move(encoded), settings.relaxed)),
      settings_(std::move(settings)) {}

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
    executor_->Run(tensors);
  });
}

void Subgraph::CompileLocked() {
  if (executor_.has_value()) return;
  const auto start = std::chrono::steady_clock::now();
  compilation_.reset();  // of an attempt that failed; the model must go before its weights
  model_.reset();
  api_ = NnapiLibrary(settings_);
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
    compilation_.reset();
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
  compilation_.emplace(CompileModel(*api_, model_->get(), encoded_, devices_, settings_));
  executor_.emplace(*api_, encoded_, settings_, compilation_->get(), CanLimitTime(*api_, devices_));
}

void Subgraph::MeasureDurations(bool measure) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!executor_.has_value()) return;
  executor_->MeasureDurations(measure && CanMeasureDurations(*api_, devices_.size()));
}

JsonObject Subgraph::DescribeDurations() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  JsonObject description;
  description.Add("symbol", encoded_.symbol);
  if (executor_.has_value()) executor_->durations().AddTo(&description);
  return description;
}

JsonObject Subgraph::Describe() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  JsonObject description;
  description.Add("symbol", encoded_.symbol).Add("content", HexText(encoded_.content));
  if (!executor_.has_value()) return description;
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
