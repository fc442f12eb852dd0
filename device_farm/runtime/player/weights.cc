#include "player/weights.h"

#include <sys/mman.h>

#include "base/log.h"
#include "player/nnapi_error.h"

namespace nnfarm {

Weights::Weights(const nnapi::Api& api, const std::string& directory,
                 const WeightsReference& reference)
    : api_(api), memory_(Unset(api.ANeuralNetworksMemory_free)) {
  const std::string path = directory + "/" + reference.file;
  file_ = File::OpenForRead(path);
  const uint64_t size = file_.SizeBytes();
  if (size != reference.size) {
    throw tvm::ffi::Error("ValueError",
                          reference.file + ": " + std::to_string(size) + " bytes, " +
                              std::to_string(reference.size) + " expected",
                          "");
  }
  nnapi::Memory* memory = nullptr;
  const int result = api.ANeuralNetworksMemory_createFromFd(
      static_cast<size_t>(size), PROT_READ, file_.descriptor(), 0, &memory);
  if (result == nnapi::kNoError) {
    memory_.reset(memory);
    return;
  }
  // Some drivers take no file of this file system; the values then go by pointer.
  LogLine("ANeuralNetworksMemory_createFromFd: " + nnapi::ResultName(result) + "; mapping " +
          reference.file + " instead");
  mapped_ = MappedFile(file_, size, path);
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
