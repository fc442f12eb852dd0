#include "compilation.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "extensions.h"

namespace nnsim {
namespace {

constexpr size_t kTokenBytes = 32;

bool WithinLimits(const DeviceSpec& device, const Tensor& tensor) {
  return device.denied_types.count(Info(tensor.type).name) == 0 &&
         (device.max_rank == 0 || tensor.dims.size() <= device.max_rank);
}

}  // namespace

bool Supports(const DeviceSpec& device, const Model& model, const Operation& operation) {
  const auto fits = [&](uint32_t index) {
    return WithinLimits(device, model.operands()[index].tensor);
  };
  const std::string extension = ExtensionOf(operation.spec->code);
  if (!extension.empty() && device.extensions.count(extension) == 0) return false;
  return operation.level <= device.feature_level &&
         device.denied.count(operation.spec->name) == 0 &&
         std::all_of(operation.inputs.begin(), operation.inputs.end(), fits) &&
         std::all_of(operation.outputs.begin(), operation.outputs.end(), fits);
}

Compilation::Compilation(std::shared_ptr<const Model> model,
                         std::vector<const DeviceSpec*> devices, bool exact)
    : model_(std::move(model)), devices_(std::move(devices)), exact_(exact) {}

Status Compilation::SetCaching(const std::string& directory, const uint8_t* token) {
  struct stat entry {};
  NNSIM_REQUIRE(stat(directory.c_str(), &entry) == 0 && S_ISDIR(entry.st_mode),
                "the cache directory " + directory + " does not exist");
  constexpr char kDigits[] = "0123456789abcdef";
  cache_file_ = directory + "/";
  for (size_t i = 0; i < kTokenBytes; ++i) {
    cache_file_ += {kDigits[token[i] >> 4], kDigits[token[i] & 15]};
  }
  return Ok();
}

bool Compilation::Cached() const {
  const auto ignores = [&](size_t chosen) { return devices_[chosen]->quirks.ignore_cache; };
  return !cache_file_.empty() && std::none_of(placement_.begin(), placement_.end(), ignores) &&
         access(cache_file_.c_str(), R_OK) == 0;
}

double Compilation::CompileMicroseconds() const {
  const auto modelled = [&](size_t chosen) { return !devices_[chosen]->reference; };
  return static_cast<double>(std::count_if(placement_.begin(), placement_.end(), modelled)) *
         CurrentProfile().latency.compile_per_operation_us;
}

// The simulator has no machine code to keep: that the file is there is all it says.
void Compilation::Store() const {
  if (!cache_file_.empty()) std::ofstream(cache_file_) << placement_.size() << " operations\n";
}

Status Compilation::Finish() {
  using Microseconds = std::chrono::duration<double, std::micro>;
  if (finished_) return BadState("the compilation is finished");
  NNSIM_RETURN_IF_ERROR(Place());
  if (!Cached()) {
    const double needed = CompileMicroseconds();
    const bool late = timeout_us_ != 0 && needed >= timeout_us_;
    std::this_thread::sleep_for(Microseconds(late ? timeout_us_ : needed));
    if (late) return {ANEURALNETWORKS_MISSED_DEADLINE_TRANSIENT, "the compilation took too long"};
    Store();
  }
  finished_ = true;
  return Ok();
}

Status Compilation::Place() {
  placement_.clear();
  for (const Operation& operation : model_->operations()) {
    size_t chosen = 0;
    while (chosen < devices_.size() &&
           !Supports(*devices_[chosen], *model_, operation)) {
      ++chosen;
    }
    NNSIM_REQUIRE(chosen < devices_.size(),
                  std::string(operation.spec->name) + " is supported by none of the devices");
    placement_.push_back(chosen);
  }
  return Ok();
}

}  // namespace nnsim
