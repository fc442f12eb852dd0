// The part of the NNAPI C interface the simulator exports: feature levels 1 to 8.
//
// Written from the public API reference. Names and values are the platform's; the layout of every
// struct and the signature of every function is ABI and must not change.
#ifndef DEVICE_FARM_SIMULATOR_INCLUDE_NNAPI_H_
#define DEVICE_FARM_SIMULATOR_INCLUDE_NNAPI_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NNAPI_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

enum {
  ANEURALNETWORKS_FLOAT32 = 0,
  ANEURALNETWORKS_INT32 = 1,
  ANEURALNETWORKS_UINT32 = 2,
  ANEURALNETWORKS_TENSOR_FLOAT32 = 3,
  ANEURALNETWORKS_TENSOR_INT32 = 4,
  ANEURALNETWORKS_TENSOR_QUANT8_ASYMM = 5,
  ANEURALNETWORKS_BOOL = 6,
  ANEURALNETWORKS_TENSOR_QUANT16_SYMM = 7,
  ANEURALNETWORKS_TENSOR_FLOAT16 = 8,
  ANEURALNETWORKS_TENSOR_BOOL8 = 9,
  ANEURALNETWORKS_FLOAT16 = 10,
  ANEURALNETWORKS_TENSOR_QUANT8_SYMM_PER_CHANNEL = 11,
  ANEURALNETWORKS_TENSOR_QUANT16_ASYMM = 12,
  ANEURALNETWORKS_TENSOR_QUANT8_SYMM = 13,
  ANEURALNETWORKS_TENSOR_QUANT8_ASYMM_SIGNED = 14,
  ANEURALNETWORKS_MODEL = 15,
};

enum {
  ANEURALNETWORKS_NO_ERROR = 0,
  ANEURALNETWORKS_OUT_OF_MEMORY = 1,
  ANEURALNETWORKS_INCOMPLETE = 2,
  ANEURALNETWORKS_UNEXPECTED_NULL = 3,
  ANEURALNETWORKS_BAD_DATA = 4,
  ANEURALNETWORKS_OP_FAILED = 5,
  ANEURALNETWORKS_BAD_STATE = 6,
  ANEURALNETWORKS_UNMAPPABLE = 7,
  ANEURALNETWORKS_OUTPUT_INSUFFICIENT_SIZE = 8,
  ANEURALNETWORKS_UNAVAILABLE_DEVICE = 9,
  ANEURALNETWORKS_MISSED_DEADLINE_TRANSIENT = 10,
  ANEURALNETWORKS_MISSED_DEADLINE_PERSISTENT = 11,
};

enum {
  ANEURALNETWORKS_FUSED_NONE = 0,
  ANEURALNETWORKS_FUSED_RELU = 1,
  ANEURALNETWORKS_FUSED_RELU1 = 2,
  ANEURALNETWORKS_FUSED_RELU6 = 3,
};

enum { ANEURALNETWORKS_PADDING_SAME = 1, ANEURALNETWORKS_PADDING_VALID = 2 };

enum {
  ANEURALNETWORKS_DEVICE_OTHER = 1,
  ANEURALNETWORKS_DEVICE_CPU = 2,
  ANEURALNETWORKS_DEVICE_GPU = 3,
  ANEURALNETWORKS_DEVICE_ACCELERATOR = 4,
};

enum { ANEURALNETWORKS_MAX_SIZE_OF_IMMEDIATELY_COPIED_VALUES = 128 };
enum { ANEURALNETWORKS_BYTE_SIZE_OF_CACHE_TOKEN = 32 };

typedef struct ANeuralNetworksMemory ANeuralNetworksMemory;
typedef struct ANeuralNetworksMemoryDesc ANeuralNetworksMemoryDesc;
typedef struct ANeuralNetworksModel ANeuralNetworksModel;
typedef struct ANeuralNetworksDevice ANeuralNetworksDevice;
typedef struct ANeuralNetworksCompilation ANeuralNetworksCompilation;
typedef struct ANeuralNetworksExecution ANeuralNetworksExecution;
typedef struct ANeuralNetworksBurst ANeuralNetworksBurst;
typedef struct ANeuralNetworksEvent ANeuralNetworksEvent;
typedef struct AHardwareBuffer AHardwareBuffer;

typedef int32_t ANeuralNetworksOperationType;

typedef struct ANeuralNetworksOperandType {
  int32_t type;
  uint32_t dimensionCount;
  const uint32_t* dimensions;
  float scale;
  int32_t zeroPoint;
} ANeuralNetworksOperandType;

typedef struct ANeuralNetworksSymmPerChannelQuantParams {
  uint32_t channelDim;
  uint32_t scaleCount;
  const float* scales;
} ANeuralNetworksSymmPerChannelQuantParams;

// Level 1.
NNAPI_EXPORT int ANeuralNetworksMemory_createFromFd(size_t size, int protect, int fd, size_t offset,
                                                    ANeuralNetworksMemory** memory);
NNAPI_EXPORT void ANeuralNetworksMemory_free(ANeuralNetworksMemory* memory);
NNAPI_EXPORT int ANeuralNetworksModel_create(ANeuralNetworksModel** model);
NNAPI_EXPORT void ANeuralNetworksModel_free(ANeuralNetworksModel* model);
NNAPI_EXPORT int ANeuralNetworksModel_finish(ANeuralNetworksModel* model);
NNAPI_EXPORT int ANeuralNetworksModel_addOperand(ANeuralNetworksModel* model,
                                                 const ANeuralNetworksOperandType* type);
NNAPI_EXPORT int ANeuralNetworksModel_setOperandValue(ANeuralNetworksModel* model, int32_t index,
                                                      const void* buffer, size_t length);
NNAPI_EXPORT int ANeuralNetworksModel_setOperandValueFromMemory(ANeuralNetworksModel* model,
                                                                int32_t index,
                                                                const ANeuralNetworksMemory* memory,
                                                                size_t offset, size_t length);
NNAPI_EXPORT int ANeuralNetworksModel_addOperation(ANeuralNetworksModel* model,
                                                   ANeuralNetworksOperationType type,
                                                   uint32_t inputCount, const uint32_t* inputs,
                                                   uint32_t outputCount, const uint32_t* outputs);
NNAPI_EXPORT int ANeuralNetworksModel_identifyInputsAndOutputs(ANeuralNetworksModel* model,
                                                               uint32_t inputCount,
                                                               const uint32_t* inputs,
                                                               uint32_t outputCount,
                                                               const uint32_t* outputs);
NNAPI_EXPORT int ANeuralNetworksCompilation_create(ANeuralNetworksModel* model,
                                                   ANeuralNetworksCompilation** compilation);
NNAPI_EXPORT void ANeuralNetworksCompilation_free(ANeuralNetworksCompilation* compilation);
NNAPI_EXPORT int ANeuralNetworksCompilation_setPreference(ANeuralNetworksCompilation* compilation,
                                                          int32_t preference);
NNAPI_EXPORT int ANeuralNetworksCompilation_finish(ANeuralNetworksCompilation* compilation);
NNAPI_EXPORT int ANeuralNetworksExecution_create(ANeuralNetworksCompilation* compilation,
                                                 ANeuralNetworksExecution** execution);
NNAPI_EXPORT void ANeuralNetworksExecution_free(ANeuralNetworksExecution* execution);
NNAPI_EXPORT int ANeuralNetworksExecution_setInput(ANeuralNetworksExecution* execution,
                                                   int32_t index,
                                                   const ANeuralNetworksOperandType* type,
                                                   const void* buffer, size_t length);
NNAPI_EXPORT int ANeuralNetworksExecution_setInputFromMemory(
    ANeuralNetworksExecution* execution, int32_t index, const ANeuralNetworksOperandType* type,
    const ANeuralNetworksMemory* memory, size_t offset, size_t length);
NNAPI_EXPORT int ANeuralNetworksExecution_setOutput(ANeuralNetworksExecution* execution,
                                                    int32_t index,
                                                    const ANeuralNetworksOperandType* type,
                                                    void* buffer, size_t length);
NNAPI_EXPORT int ANeuralNetworksExecution_setOutputFromMemory(
    ANeuralNetworksExecution* execution, int32_t index, const ANeuralNetworksOperandType* type,
    const ANeuralNetworksMemory* memory, size_t offset, size_t length);
NNAPI_EXPORT int ANeuralNetworksExecution_startCompute(ANeuralNetworksExecution* execution,
                                                       ANeuralNetworksEvent** event);
NNAPI_EXPORT int ANeuralNetworksEvent_wait(ANeuralNetworksEvent* event);
NNAPI_EXPORT void ANeuralNetworksEvent_free(ANeuralNetworksEvent* event);

// Level 2.
NNAPI_EXPORT int ANeuralNetworksModel_relaxComputationFloat32toFloat16(ANeuralNetworksModel* model,
                                                                       bool allow);

// Level 3.
NNAPI_EXPORT int ANeuralNetworks_getDeviceCount(uint32_t* count);
NNAPI_EXPORT int ANeuralNetworks_getDevice(uint32_t index, ANeuralNetworksDevice** device);
NNAPI_EXPORT int ANeuralNetworksDevice_getName(const ANeuralNetworksDevice* device,
                                               const char** name);
NNAPI_EXPORT int ANeuralNetworksDevice_getType(const ANeuralNetworksDevice* device, int32_t* type);
NNAPI_EXPORT int ANeuralNetworksDevice_getVersion(const ANeuralNetworksDevice* device,
                                                  const char** version);
NNAPI_EXPORT int ANeuralNetworksDevice_getFeatureLevel(const ANeuralNetworksDevice* device,
                                                       int64_t* feature_level);
NNAPI_EXPORT int ANeuralNetworksDevice_getExtensionSupport(const ANeuralNetworksDevice* device,
                                                           const char* extension, bool* supported);
NNAPI_EXPORT int ANeuralNetworksModel_getSupportedOperationsForDevices(
    const ANeuralNetworksModel* model, const ANeuralNetworksDevice* const* devices,
    uint32_t device_count, bool* supported);
NNAPI_EXPORT int ANeuralNetworksCompilation_createForDevices(
    ANeuralNetworksModel* model, const ANeuralNetworksDevice* const* devices, uint32_t device_count,
    ANeuralNetworksCompilation** compilation);
NNAPI_EXPORT int ANeuralNetworksCompilation_setCaching(ANeuralNetworksCompilation* compilation,
                                                       const char* directory, const uint8_t* token);
NNAPI_EXPORT int ANeuralNetworksExecution_compute(ANeuralNetworksExecution* execution);
NNAPI_EXPORT int ANeuralNetworksExecution_burstCompute(ANeuralNetworksExecution* execution,
                                                       ANeuralNetworksBurst* burst);
NNAPI_EXPORT int ANeuralNetworksBurst_create(ANeuralNetworksCompilation* compilation,
                                             ANeuralNetworksBurst** burst);
NNAPI_EXPORT void ANeuralNetworksBurst_free(ANeuralNetworksBurst* burst);
NNAPI_EXPORT int ANeuralNetworksExecution_getOutputOperandRank(ANeuralNetworksExecution* execution,
                                                               int32_t index, uint32_t* rank);
NNAPI_EXPORT int ANeuralNetworksExecution_getOutputOperandDimensions(
    ANeuralNetworksExecution* execution, int32_t index, uint32_t* dimensions);
NNAPI_EXPORT int ANeuralNetworksExecution_setMeasureTiming(ANeuralNetworksExecution* execution,
                                                           bool measure);
NNAPI_EXPORT int ANeuralNetworksExecution_getDuration(const ANeuralNetworksExecution* execution,
                                                      int32_t code, uint64_t* duration_ns);
NNAPI_EXPORT int ANeuralNetworksMemory_createFromAHardwareBuffer(const AHardwareBuffer* buffer,
                                                                 ANeuralNetworksMemory** memory);
NNAPI_EXPORT int ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(
    ANeuralNetworksModel* model, int32_t index,
    const ANeuralNetworksSymmPerChannelQuantParams* params);
NNAPI_EXPORT int ANeuralNetworksModel_getExtensionOperandType(ANeuralNetworksModel* model,
                                                              const char* extension,
                                                              uint16_t code, int32_t* type);
NNAPI_EXPORT int ANeuralNetworksModel_getExtensionOperationType(ANeuralNetworksModel* model,
                                                                const char* extension,
                                                                uint16_t code,
                                                                ANeuralNetworksOperationType* type);
NNAPI_EXPORT int ANeuralNetworksModel_setOperandExtensionData(ANeuralNetworksModel* model,
                                                              int32_t index, const void* data,
                                                              size_t length);

// Level 4.
NNAPI_EXPORT int ANeuralNetworksDevice_wait(const ANeuralNetworksDevice* device);
NNAPI_EXPORT int ANeuralNetworksModel_setOperandValueFromModel(ANeuralNetworksModel* model,
                                                               int32_t index,
                                                               const ANeuralNetworksModel* value);
NNAPI_EXPORT int ANeuralNetworksCompilation_setPriority(ANeuralNetworksCompilation* compilation,
                                                        int priority);
NNAPI_EXPORT int ANeuralNetworksCompilation_setTimeout(ANeuralNetworksCompilation* compilation,
                                                       uint64_t duration_ns);
NNAPI_EXPORT int ANeuralNetworksExecution_setTimeout(ANeuralNetworksExecution* execution,
                                                     uint64_t duration_ns);
NNAPI_EXPORT int ANeuralNetworksExecution_setLoopTimeout(ANeuralNetworksExecution* execution,
                                                         uint64_t duration_ns);
NNAPI_EXPORT uint64_t ANeuralNetworks_getDefaultLoopTimeout(void);
NNAPI_EXPORT uint64_t ANeuralNetworks_getMaximumLoopTimeout(void);
NNAPI_EXPORT int ANeuralNetworksMemoryDesc_create(ANeuralNetworksMemoryDesc** desc);
NNAPI_EXPORT void ANeuralNetworksMemoryDesc_free(ANeuralNetworksMemoryDesc* desc);
NNAPI_EXPORT int ANeuralNetworksMemoryDesc_addInputRole(
    ANeuralNetworksMemoryDesc* desc, const ANeuralNetworksCompilation* compilation, uint32_t index,
    float frequency);
NNAPI_EXPORT int ANeuralNetworksMemoryDesc_addOutputRole(
    ANeuralNetworksMemoryDesc* desc, const ANeuralNetworksCompilation* compilation, uint32_t index,
    float frequency);
NNAPI_EXPORT int ANeuralNetworksMemoryDesc_setDimensions(ANeuralNetworksMemoryDesc* desc,
                                                         uint32_t rank, const uint32_t* dimensions);
NNAPI_EXPORT int ANeuralNetworksMemoryDesc_finish(ANeuralNetworksMemoryDesc* desc);
NNAPI_EXPORT int ANeuralNetworksMemory_createFromDesc(const ANeuralNetworksMemoryDesc* desc,
                                                      ANeuralNetworksMemory** memory);
NNAPI_EXPORT int ANeuralNetworksMemory_copy(const ANeuralNetworksMemory* source,
                                            const ANeuralNetworksMemory* destination);
NNAPI_EXPORT int ANeuralNetworksEvent_createFromSyncFenceFd(int fd, ANeuralNetworksEvent** event);
NNAPI_EXPORT int ANeuralNetworksEvent_getSyncFenceFd(const ANeuralNetworksEvent* event, int* fd);
NNAPI_EXPORT int ANeuralNetworksExecution_startComputeWithDependencies(
    ANeuralNetworksExecution* execution, const ANeuralNetworksEvent* const* dependencies,
    uint32_t dependency_count, uint64_t duration_ns, ANeuralNetworksEvent** event);

// Level 5.
NNAPI_EXPORT int64_t ANeuralNetworks_getRuntimeFeatureLevel(void);
NNAPI_EXPORT int ANeuralNetworksExecution_enableInputAndOutputPadding(
    ANeuralNetworksExecution* execution, bool enable);
NNAPI_EXPORT int ANeuralNetworksExecution_setReusable(ANeuralNetworksExecution* execution,
                                                      bool reusable);
NNAPI_EXPORT int ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput(
    const ANeuralNetworksCompilation* compilation, uint32_t index, uint32_t* alignment);
NNAPI_EXPORT int ANeuralNetworksCompilation_getPreferredMemoryPaddingForInput(
    const ANeuralNetworksCompilation* compilation, uint32_t index, uint32_t* padding);
NNAPI_EXPORT int ANeuralNetworksCompilation_getPreferredMemoryAlignmentForOutput(
    const ANeuralNetworksCompilation* compilation, uint32_t index, uint32_t* alignment);
NNAPI_EXPORT int ANeuralNetworksCompilation_getPreferredMemoryPaddingForOutput(
    const ANeuralNetworksCompilation* compilation, uint32_t index, uint32_t* padding);
// The table of a support-library driver: its level, then functions in the order of the ABI. Null
// below level 5.
NNAPI_EXPORT const void* ANeuralNetworks_getSLDriverImpl(void);

// Level 8.
NNAPI_EXPORT int ANeuralNetworksCompilation_addExtensionAttribute(
    ANeuralNetworksCompilation* compilation, const char* extension, uint16_t code, const void* data,
    size_t length);
NNAPI_EXPORT int ANeuralNetworksExecution_addExtensionAttribute(ANeuralNetworksExecution* execution,
                                                                const char* extension,
                                                                uint16_t code, const void* data,
                                                                size_t length);

#ifdef __cplusplus
}
#endif

#endif  // DEVICE_FARM_SIMULATOR_INCLUDE_NNAPI_H_
