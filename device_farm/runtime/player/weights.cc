#include "player/weights.h"

#include <sys/mman.h>

#include "base/log.h"
#include "player/nnapi_error.h"

namespace nnfarm {
namespace {

// A driver's service may not be allowed to read files of this folder. Below level 3 NNAPI then
// computes on the CPU without a word; from there on compiling fails and can be tried again.
constexpr int kFileMemoryLevel = 3;

}  // namespace

Weights::Weights(const nnapi::Api& api, const std::string& directory,
                 const WeightsReference& reference)
    : api_(api),
      path_(directory + "/" + reference.file),
      file_(File::OpenForRead(path_)),
      memory_(Unset(api.ANeuralNetworksMemory_free)) {
  const uint64_t size = file_.SizeBytes();
  if (size != reference.size) {
    throw tvm::ffi::Error("ValueError",
                          reference.file + ": " + std::to_string(size) + " bytes, " +
                              std::to_string(reference.size) + " expected",
                          "");
  }
  if (api.feature_level < kFileMemoryLevel) {
    UsePointers();
    return;
  }
  nnapi::Memory* memory = nullptr;
  const int result = api.ANeuralNetworksMemory_createFromFd(
      static_cast<size_t>(size), PROT_READ, file_.descriptor(), 0, &memory);
  if (result == nnapi::kNoError && memory != nullptr) {
    memory_.reset(memory);
    return;
  }
  LogLine("ANeuralNetworksMemory_createFromFd: " + nnapi::ResultName(result) + "; mapping " +
          reference.file + " instead");
  UsePointers();
}

void Weights::UsePointers() {
  memory_.reset();
  mapped_ = MappedFile(file_, file_.SizeBytes(), path_);
}

void Weights::SetOperand(nnapi::Model* model, int32_t index, const EncodedOperand& operand) const {
  const auto offset = static_cast<size_t>(operand.offset);
  const auto size = static_cast<size_t>(operand.size);
  if (memory_ != nullptr) {
    nnapi::Check(api_.ANeuralNetworksModel_setOperandValueFromMemory(model, index, memory_.get(),
                                                                     offset, size),
                 fallback_code::kModelRefused, "ANeuralNetworksModel_setOperandValueFromMemory");
  } else {
    nnapi::Check(
        api_.ANeuralNetworksModel_setOperandValue(model, index, mapped_.data() + offset, size),
        fallback_code::kModelRefused, "ANeuralNetworksModel_setOperandValue");
  }
}

}  // namespace nnfarm
