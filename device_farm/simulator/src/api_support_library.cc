// The library as a support-library driver: a table of functions that an app loads by path, beside
// or instead of the phone's own NNAPI.
#include <iterator>

#include "extensions.h"
#include "handles.h"

using nnsim::BadData;
using nnsim::Report;

namespace {

constexpr int kFirstLevel = 5;

// What the table has of the ordinary interface, in the order its ABI gives: that of the names, not
// of the levels. Functions an app never calls on a driver (Compilation_create, startCompute) are
// not in it.
#define NNSIM_TABLE_FUNCTIONS(X)                                       \
  X(ANeuralNetworksBurst_create)                                       \
  X(ANeuralNetworksBurst_free)                                         \
  X(ANeuralNetworksCompilation_createForDevices)                       \
  X(ANeuralNetworksCompilation_finish)                                 \
  X(ANeuralNetworksCompilation_free)                                   \
  X(ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput)    \
  X(ANeuralNetworksCompilation_getPreferredMemoryAlignmentForOutput)   \
  X(ANeuralNetworksCompilation_getPreferredMemoryPaddingForInput)      \
  X(ANeuralNetworksCompilation_getPreferredMemoryPaddingForOutput)     \
  X(ANeuralNetworksCompilation_setCaching)                             \
  X(ANeuralNetworksCompilation_setPreference)                          \
  X(ANeuralNetworksCompilation_setPriority)                            \
  X(ANeuralNetworksCompilation_setTimeout)                             \
  X(ANeuralNetworksDevice_getExtensionSupport)                         \
  X(ANeuralNetworksDevice_getFeatureLevel)                             \
  X(ANeuralNetworksDevice_getName)                                     \
  X(ANeuralNetworksDevice_getType)                                     \
  X(ANeuralNetworksDevice_getVersion)                                  \
  X(ANeuralNetworksDevice_wait)                                        \
  X(ANeuralNetworksEvent_createFromSyncFenceFd)                        \
  X(ANeuralNetworksEvent_free)                                         \
  X(ANeuralNetworksEvent_getSyncFenceFd)                               \
  X(ANeuralNetworksEvent_wait)                                         \
  X(ANeuralNetworksExecution_burstCompute)                             \
  X(ANeuralNetworksExecution_compute)                                  \
  X(ANeuralNetworksExecution_create)                                   \
  X(ANeuralNetworksExecution_enableInputAndOutputPadding)              \
  X(ANeuralNetworksExecution_free)                                     \
  X(ANeuralNetworksExecution_getDuration)                              \
  X(ANeuralNetworksExecution_getOutputOperandDimensions)               \
  X(ANeuralNetworksExecution_getOutputOperandRank)                     \
  X(ANeuralNetworksExecution_setInput)                                 \
  X(ANeuralNetworksExecution_setInputFromMemory)                       \
  X(ANeuralNetworksExecution_setLoopTimeout)                           \
  X(ANeuralNetworksExecution_setMeasureTiming)                         \
  X(ANeuralNetworksExecution_setOutput)                                \
  X(ANeuralNetworksExecution_setOutputFromMemory)                      \
  X(ANeuralNetworksExecution_setReusable)                              \
  X(ANeuralNetworksExecution_setTimeout)                               \
  X(ANeuralNetworksExecution_startComputeWithDependencies)             \
  X(ANeuralNetworksMemoryDesc_addInputRole)                            \
  X(ANeuralNetworksMemoryDesc_addOutputRole)                           \
  X(ANeuralNetworksMemoryDesc_create)                                  \
  X(ANeuralNetworksMemoryDesc_finish)                                  \
  X(ANeuralNetworksMemoryDesc_free)                                    \
  X(ANeuralNetworksMemoryDesc_setDimensions)                           \
  X(ANeuralNetworksMemory_copy)                                        \
  X(ANeuralNetworksMemory_createFromAHardwareBuffer)                   \
  X(ANeuralNetworksMemory_createFromDesc)                              \
  X(ANeuralNetworksMemory_createFromFd)                                \
  X(ANeuralNetworksMemory_free)                                        \
  X(ANeuralNetworksModel_addOperand)                                   \
  X(ANeuralNetworksModel_addOperation)                                 \
  X(ANeuralNetworksModel_create)                                       \
  X(ANeuralNetworksModel_finish)                                       \
  X(ANeuralNetworksModel_free)                                         \
  X(ANeuralNetworksModel_getExtensionOperandType)                      \
  X(ANeuralNetworksModel_getExtensionOperationType)                    \
  X(ANeuralNetworksModel_getSupportedOperationsForDevices)             \
  X(ANeuralNetworksModel_identifyInputsAndOutputs)                     \
  X(ANeuralNetworksModel_relaxComputationFloat32toFloat16)             \
  X(ANeuralNetworksModel_setOperandExtensionData)                      \
  X(ANeuralNetworksModel_setOperandSymmPerChannelQuantParams)          \
  X(ANeuralNetworksModel_setOperandValue)                              \
  X(ANeuralNetworksModel_setOperandValueFromMemory)                    \
  X(ANeuralNetworksModel_setOperandValueFromModel)                     \
  X(ANeuralNetworks_getDefaultLoopTimeout)                             \
  X(ANeuralNetworks_getDevice)                                         \
  X(ANeuralNetworks_getDeviceCount)                                    \
  X(ANeuralNetworks_getMaximumLoopTimeout)                             \
  X(ANeuralNetworks_getRuntimeFeatureLevel)

// Relative to the phone's CPU.
struct PerformanceInfo {
  float exec_time, power_usage;
};

struct OperandPerformance {
  int32_t operand_type;
  PerformanceInfo info;
};

struct ExtensionOperandType {
  uint16_t code;
  bool is_tensor;
  uint32_t byte_size;
};

// Caching by descriptors: the devices ask for no files, so there is nothing to keep in them.
int SetCachingFromFds(ANeuralNetworksCompilation* compilation, const int*, uint32_t model_files,
                      const int*, uint32_t data_files, const uint8_t* token) {
  NNSIM_NOT_NULL(compilation);
  NNSIM_NOT_NULL(token);
  if (model_files != 0 || data_files != 0) {
    return Report(__func__, BadData("the device needs no cache files"));
  }
  return ANEURALNETWORKS_NO_ERROR;
}

int GetNumberOfCacheFilesNeeded(const ANeuralNetworksDevice* device, uint32_t* model_files,
                                uint32_t* data_files) {
  NNSIM_NOT_NULL(device);
  NNSIM_NOT_NULL(model_files);
  NNSIM_NOT_NULL(data_files);
  *model_files = *data_files = 0;
  return ANEURALNETWORKS_NO_ERROR;
}

int GetPerformanceInfo(const ANeuralNetworksDevice* device, int32_t, PerformanceInfo* info) {
  NNSIM_NOT_NULL(device);
  NNSIM_NOT_NULL(info);
  *info = {1.0f, 1.0f};  // the kernels of all devices run on the CPU
  return ANEURALNETWORKS_NO_ERROR;
}

int ForEachOperandPerformance(const ANeuralNetworksDevice* device, void* context,
                              void (*callback)(OperandPerformance, void*)) {
  NNSIM_NOT_NULL(device);
  NNSIM_NOT_NULL(callback);
  for (int32_t type = 0; type < nnsim::kTypeCount; ++type) callback({type, {1.0f, 1.0f}}, context);
  return ANEURALNETWORKS_NO_ERROR;
}

int GetVendorExtensionCount(const ANeuralNetworksDevice* device, uint32_t* count) {
  NNSIM_NOT_NULL(device);
  NNSIM_NOT_NULL(count);
  *count = static_cast<uint32_t>(device->spec.extensions.size());
  return ANEURALNETWORKS_NO_ERROR;
}

int GetVendorExtensionName(const ANeuralNetworksDevice* device, uint32_t index,
                           const char** name) {
  NNSIM_NOT_NULL(device);
  NNSIM_NOT_NULL(name);
  const auto& extensions = device->spec.extensions;
  if (index >= extensions.size()) return Report(__func__, BadData("no such extension"));
  *name = std::next(extensions.begin(), index)->c_str();
  return ANEURALNETWORKS_NO_ERROR;
}

int ForEachExtensionOperandType(const ANeuralNetworksDevice* device, uint32_t index, void* context,
                                void (*callback)(ExtensionOperandType, void*)) {
  NNSIM_NOT_NULL(callback);
  const char* name = nullptr;
  const int result = GetVendorExtensionName(device, index, &name);
  if (result != ANEURALNETWORKS_NO_ERROR) return result;
  for (const nnsim::ExtensionType& type : nnsim::ExtensionTypes(name)) {
    callback({type.code, type.info.tensor, type.info.size}, context);
  }
  return ANEURALNETWORKS_NO_ERROR;
}

struct DriverTable {
  int64_t level;
#define NNSIM_MEMBER(name) decltype(&::name) name##_;
  NNSIM_TABLE_FUNCTIONS(NNSIM_MEMBER)
#undef NNSIM_MEMBER
  decltype(&SetCachingFromFds) set_caching_from_fds;
  decltype(&GetNumberOfCacheFilesNeeded) get_number_of_cache_files_needed;
  decltype(&GetPerformanceInfo) get_performance_info;
  decltype(&ForEachOperandPerformance) for_each_operand_performance;
  decltype(&GetVendorExtensionCount) get_vendor_extension_count;
  decltype(&GetVendorExtensionName) get_vendor_extension_name;
  decltype(&ForEachExtensionOperandType) for_each_extension_operand_type;
  // Readers of the records of finished compilations (11) and executions (14), and what registers
  // for such records: null, nothing is recorded.
  void (*diagnostics[11 + 14 + 1])();
};

DriverTable MakeTable() {
#define NNSIM_VALUE(name) ::name,
  return {ANeuralNetworks_getRuntimeFeatureLevel(),
          NNSIM_TABLE_FUNCTIONS(NNSIM_VALUE) SetCachingFromFds,
          GetNumberOfCacheFilesNeeded,
          GetPerformanceInfo,
          ForEachOperandPerformance,
          GetVendorExtensionCount,
          GetVendorExtensionName,
          ForEachExtensionOperandType,
          {}};
#undef NNSIM_VALUE
}

}  // namespace

// Null below level 5, the first one that has support-library drivers.
const void* ANeuralNetworks_getSLDriverImpl(void) {
  static const DriverTable table = MakeTable();
  return nnsim::CurrentProfile().feature_level < kFirstLevel ? nullptr : &table;
}
