#include "player/support_driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "player/nnapi_error.h"

namespace nnfarm {
namespace nnapi {
namespace {

// The first level with support libraries, as NNAPI numbers it (Android API 31).
constexpr int64_t kFirstLevel = 31;

// What follows the level in NnApiSLDriverImplFL5, each name after "ANeuralNetworks". The functions of
// support libraries alone (SL_...), which the player has no use for, come after these.
constexpr const char* kFunctions[] = {
    "Burst_create",
    "Burst_free",
    "Compilation_createForDevices",
    "Compilation_finish",
    "Compilation_free",
    "Compilation_getPreferredMemoryAlignmentForInput",
    "Compilation_getPreferredMemoryAlignmentForOutput",
    "Compilation_getPreferredMemoryPaddingForInput",
    "Compilation_getPreferredMemoryPaddingForOutput",
    "Compilation_setCaching",
    "Compilation_setPreference",
    "Compilation_setPriority",
    "Compilation_setTimeout",
    "Device_getExtensionSupport",
    "Device_getFeatureLevel",
    "Device_getName",
    "Device_getType",
    "Device_getVersion",
    "Device_wait",
    "Event_createFromSyncFenceFd",
    "Event_free",
    "Event_getSyncFenceFd",
    "Event_wait",
    "Execution_burstCompute",
    "Execution_compute",
    "Execution_create",
    "Execution_enableInputAndOutputPadding",
    "Execution_free",
    "Execution_getDuration",
    "Execution_getOutputOperandDimensions",
    "Execution_getOutputOperandRank",
    "Execution_setInput",
    "Execution_setInputFromMemory",
    "Execution_setLoopTimeout",
    "Execution_setMeasureTiming",
    "Execution_setOutput",
    "Execution_setOutputFromMemory",
    "Execution_setReusable",
    "Execution_setTimeout",
    "Execution_startComputeWithDependencies",
    "MemoryDesc_addInputRole",
    "MemoryDesc_addOutputRole",
    "MemoryDesc_create",
    "MemoryDesc_finish",
    "MemoryDesc_free",
    "MemoryDesc_setDimensions",
    "Memory_copy",
    "Memory_createFromAHardwareBuffer",
    "Memory_createFromDesc",
    "Memory_createFromFd",
    "Memory_free",
    "Model_addOperand",
    "Model_addOperation",
    "Model_create",
    "Model_finish",
    "Model_free",
    "Model_getExtensionOperandType",
    "Model_getExtensionOperationType",
    "Model_getSupportedOperationsForDevices",
    "Model_identifyInputsAndOutputs",
    "Model_relaxComputationFloat32toFloat16",
    "Model_setOperandExtensionData",
    "Model_setOperandSymmPerChannelQuantParams",
    "Model_setOperandValue",
    "Model_setOperandValueFromMemory",
    "Model_setOperandValueFromModel",
    "_getDefaultLoopTimeout",
    "_getDevice",
    "_getDeviceCount",
    "_getMaximumLoopTimeout",
    "_getRuntimeFeatureLevel",
};
static_assert(std::size(kFunctions) == 71, "the ABI's count");

struct Table {
  int64_t level;
  void* functions[std::size(kFunctions)];
};

}  // namespace

SupportDriver::SupportDriver(void* library, const std::string& path) {
  constexpr char kEntry[] = "ANeuralNetworks_getSLDriverImpl";
  const auto get = reinterpret_cast<const Table* (*)()>(dlsym(library, kEntry));
  if (get == nullptr) {
    ThrowNnapiError(fallback_code::kMissing,
                    path + " is no support-library driver: it lacks " + kEntry);
  }
  const Table* table = get();
  if (table == nullptr || table->level < kFirstLevel) {
    ThrowNnapiError(fallback_code::kMissing,
                    path + ": " + kEntry + " gives no table of feature level 5 or later");
  }
  functions_ = table->functions;
}

void* SupportDriver::Find(const std::string& name) const {
  const auto found =
      std::find_if(std::begin(kFunctions), std::end(kFunctions), [&](const char* function) {
        return name == std::string("ANeuralNetworks") + function;
      });
  return found == std::end(kFunctions) ? nullptr : functions_[found - std::begin(kFunctions)];
}

}  // namespace nnapi
}  // namespace nnfarm
