#include "api/model.h"

#include <limits>
#include <mutex>
#include <utility>

#include "api/cpu.h"
#include "api/player_calls.h"
#include "api/run_error.h"
#include "api/tensor_memory.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/log.h"
#include "player/nnapi_error.h"

namespace nnfarm {
namespace {

namespace ffi = tvm::ffi;

// The player's settings and its list of subgraphs are the process's: one model is opened or closed
// at a time, and every subgraph of the others is compiled by then.
std::mutex& PlayerMutex() {
  static auto* mutex = new std::mutex();  // models may be closed after static objects are gone
  return *mutex;
}

// The newest `count` of all loaded subgraphs: those of the library just loaded. Their order is that
// of loading.
std::string LastSubgraphs(size_t count) {
  const std::string text = DescribeSubgraphs();
  const std::vector<JsonValue> all = JsonValue::Parse(text, "subgraphs").Items();
  std::vector<JsonObject> mine;
  for (size_t i = all.size() - count; i < all.size(); ++i) {
    AddSubgraph(all[i], &mine.emplace_back());
  }
  return JsonArrayText(mine);
}

size_t CountSubgraphs() { return JsonValue::Parse(DescribeSubgraphs(), "subgraphs").Items().size(); }

std::string ReportText(const Package& package) {
  if (package.report.empty()) return "null";
  std::string text = ReadText(package.report);
  JsonValue::Parse(text, "report.json");
  return text;
}

}  // namespace

Model::Model(const std::string& directory, const ModelOptions& options)
    : options_(options),
      package_(Package::Load(directory, CpuChoice(options_.cpu_variant, CpuFeatures()))),
      inputs_(package_.inputs.size()),
      subgraphs_("[]") {
  SetThreads(options_.threads);
  if (options_.mode == Mode::kCpu) {
    OpenTwin();
  } else {
    WithTwin([this] { OpenLibrary(); });
  }
}

Model::~Model() { CloseSession(); }

void Model::CloseSession() {
  const std::lock_guard<std::mutex> lock(PlayerMutex());
  session_.reset();
}

void Model::OpenLibrary() {
  const std::lock_guard<std::mutex> lock(PlayerMutex());
  ConfigurePlayer(options_, package_);
  if (package_.subgraph_count > 0) nnapi_ = DescribeNnapi();
  const size_t others = CountSubgraphs();
  library_ = package_.library;
  session_.emplace(OpenSession(library_.path, package_.entry));
  const size_t mine = CountSubgraphs() - others;
  try {
    CompileSubgraphs();
  } catch (...) {
    session_.reset();  // before another model is opened, which would compile these subgraphs again
    throw;
  }
  subgraphs_ = LastSubgraphs(mine);
}

void Model::OpenTwin() {
  CloseSession();
  library_ = package_.cpu_twin;
  session_.emplace(OpenSession(library_.path, package_.entry));
}

void Model::WithTwin(const std::function<void()>& work) {
  try {
    return work();
  } catch (const ffi::Error& error) {
    if (error.kind() != kNnapiErrorKind) ThrowFailed(error.kind() + ": " + error.message());
    fallback_ = Fallback::FromMessage(error.message());
  }
  if (options_.mode == Mode::kNnapi) {
    throw RunError(ExitCode::kNnapiFailed, fallback_->code, fallback_->detail);
  }
  LogLine(fallback_->code + ": " + fallback_->detail + "; the CPU twin computes");
  OpenTwin();
}

const ffi::Tensor& Model::PrepareInput(size_t index, const std::vector<int64_t>& shape) {
  const TensorSpec& spec = package_.inputs.at(index);
  if (!spec.Takes(shape)) ThrowBadInputs(spec.name + ": the shape does not fit the model's");
  std::optional<ffi::Tensor>& tensor = inputs_[index];
  const bool same = tensor.has_value() &&
                    std::vector<int64_t>(tensor->shape().begin(), tensor->shape().end()) == shape;
  if (same) return *tensor;
  if (!ShapeSize(shape, spec.type->size_bytes(), std::numeric_limits<size_t>::max())) {
    ThrowBadInputs(spec.name + ": the shape is too large");
  }
  return tensor.emplace(AllocateTensor(shape, spec.type->dtype));
}

void Model::RequireInputs() const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].has_value()) ThrowBadInputs(package_.inputs[i].name + " is not set");
  }
}

void Model::Run() {
  RequireInputs();
  std::vector<ffi::Tensor> inputs;
  for (const auto& input : inputs_) inputs.push_back(*input);
  outputs_.clear();
  const auto compute = [&] {
    try {
      outputs_ = session_->Run(inputs);
    } catch (const ffi::Error& error) {
      if (error.kind() == kNnapiErrorKind) throw;
      ThrowFailed(error.kind() + ": " + error.message());
    }
  };
  const bool had_fallback = fallback_.has_value();
  WithTwin(compute);
  if (!had_fallback && fallback_.has_value()) compute();
  if (outputs_.size() != package_.outputs.size()) {
    ThrowFailed("the model returned " + std::to_string(outputs_.size()) + " tensors, " +
                std::to_string(package_.outputs.size()) + " expected");
  }
}

std::string Model::Explain() const {
  JsonObject facts;
  const bool twin = options_.mode == Mode::kCpu || fallback_.has_value();
  facts.Add("engine", twin ? "cpu" : package_.PlannedEngine())
      .Add("library", FileName(library_.path))
      .Add("operations", package_.operation_count)
      .Add("offloaded_operations", twin ? int64_t{0} : package_.offloaded_count);
  if (!library_.cpu_variant.empty()) facts.Add("cpu_variant", library_.cpu_variant);
  JsonObject reason;
  std::string text = facts.Text();
  text.pop_back();  // members that are JSON already follow
  text += ", \"fallback\": " + (fallback_ ? fallback_->AddTo(&reason).Text() : "null");
  text += ", \"nnapi\": " + (nnapi_.empty() ? "null" : nnapi_);
  text += ", \"subgraphs\": " + subgraphs_;
  return text + ", \"report\": " + ReportText(package_) + "}";
}

}  // namespace nnfarm
