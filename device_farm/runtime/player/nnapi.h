// NNAPI's C interface, found at run time, with what this device's library offers.
//
// The declarations are our own, from the public API reference: the library is opened by name, so
// one binary runs on every Android release and on phones without NNAPI.
#ifndef NNFARM_PLAYER_NNAPI_H_
#define NNFARM_PLAYER_NNAPI_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace nnfarm {
namespace nnapi {

struct Memory;
struct Model;
struct Compilation;
struct Execution;
struct Event;
struct Burst;
struct Device;

// ANeuralNetworksOperandType.
struct OperandType {
  int32_t type;
  uint32_t dimension_count;
  const uint32_t* dimensions;
  float scale;
  int32_t zero_point;
};

// ANeuralNetworksSymmPerChannelQuantParams.
struct SymmPerChannelQuantParams {
  uint32_t channel_dim;
  uint32_t scale_count;
  const float* scales;
};

inline constexpr int kNoError = 0;
// The device every library has and no accelerator is: NNAPI's own CPU reference.
inline constexpr char kReferenceDevice[] = "nnapi-reference";

// Entry points by feature level: X(name, parameters). All of level 1 must be there.
#define NNFARM_NNAPI_LEVEL_1(X)                                                                   \
  X(ANeuralNetworksMemory_createFromFd, (size_t, int, int, size_t, Memory**))                     \
  X(ANeuralNetworksModel_create, (Model**))                                                       \
  X(ANeuralNetworksModel_finish, (Model*))                                                        \
  X(ANeuralNetworksModel_addOperand, (Model*, const OperandType*))                                \
  X(ANeuralNetworksModel_setOperandValue, (Model*, int32_t, const void*, size_t))                 \
  X(ANeuralNetworksModel_setOperandValueFromMemory,                                               \
    (Model*, int32_t, const Memory*, size_t, size_t))                                             \
  X(ANeuralNetworksModel_addOperation,                                                            \
    (Model*, int32_t, uint32_t, const uint32_t*, uint32_t, const uint32_t*))                      \
  X(ANeuralNetworksModel_identifyInputsAndOutputs,                                                \
    (Model*, uint32_t, const uint32_t*, uint32_t, const uint32_t*))                               \
  X(ANeuralNetworksCompilation_setPreference, (Compilation*, int32_t))                            \
  X(ANeuralNetworksCompilation_finish, (Compilation*))                                            \
  X(ANeuralNetworksExecution_create, (Compilation*, Execution**))                                 \
  X(ANeuralNetworksExecution_setInput,                                                            \
    (Execution*, int32_t, const OperandType*, const void*, size_t))                               \
  X(ANeuralNetworksExecution_setOutput, (Execution*, int32_t, const OperandType*, void*, size_t)) \
  X(ANeuralNetworksEvent_wait, (Event*))

#define NNFARM_NNAPI_LEVEL_2(X) \
  X(ANeuralNetworksModel_relaxComputationFloat32toFloat16, (Model*, bool))

#define NNFARM_NNAPI_LEVEL_3(X)                                                          \
  X(ANeuralNetworks_getDeviceCount, (uint32_t*))                                         \
  X(ANeuralNetworks_getDevice, (uint32_t, Device**))                                     \
  X(ANeuralNetworksDevice_getName, (const Device*, const char**))                        \
  X(ANeuralNetworksDevice_getType, (const Device*, int32_t*))                            \
  X(ANeuralNetworksDevice_getVersion, (const Device*, const char**))                     \
  X(ANeuralNetworksDevice_getFeatureLevel, (const Device*, int64_t*))                    \
  X(ANeuralNetworksDevice_getExtensionSupport, (const Device*, const char*, bool*))      \
  X(ANeuralNetworksModel_setOperandSymmPerChannelQuantParams,                            \
    (Model*, int32_t, const SymmPerChannelQuantParams*))                                 \
  X(ANeuralNetworksModel_getExtensionOperandType,                                        \
    (Model*, const char*, uint16_t, int32_t*))                                           \
  X(ANeuralNetworksModel_getExtensionOperationType,                                      \
    (Model*, const char*, uint16_t, int32_t*))                                           \
  X(ANeuralNetworksModel_getSupportedOperationsForDevices,                               \
    (const Model*, const Device* const*, uint32_t, bool*))                               \
  X(ANeuralNetworksModel_setOperandExtensionData,                                        \
    (Model*, int32_t, const void*, size_t))                                              \
  X(ANeuralNetworksCompilation_setCaching, (Compilation*, const char*, const uint8_t*))  \
  X(ANeuralNetworksCompilation_createForDevices,                                         \
    (Model*, const Device* const*, uint32_t, Compilation**))                             \
  X(ANeuralNetworksExecution_compute, (Execution*))                                      \
  X(ANeuralNetworksBurst_create, (Compilation*, Burst**))                                \
  X(ANeuralNetworksExecution_burstCompute, (Execution*, Burst*))

#define NNFARM_NNAPI_LEVEL_4(X)                                   \
  X(ANeuralNetworksCompilation_setPriority, (Compilation*, int))  \
  X(ANeuralNetworksCompilation_setTimeout, (Compilation*, uint64_t)) \
  X(ANeuralNetworksExecution_setTimeout, (Execution*, uint64_t))

#define NNFARM_NNAPI_LEVEL_5(X) X(ANeuralNetworksExecution_setReusable, (Execution*, bool))

// Of level 1, but not in the table of a support-library driver.
#define NNFARM_NNAPI_LIBRARY_ONLY(X)                              \
  X(ANeuralNetworksCompilation_create, (Model*, Compilation**))   \
  X(ANeuralNetworksExecution_startCompute, (Execution*, Event**))

// Used for a setting, a measurement or with such a driver only: null where the library has none.
#define NNFARM_NNAPI_OPTIONAL(X)                                                         \
  X(ANeuralNetworksExecution_setMeasureTiming, (Execution*, bool))                       \
  X(ANeuralNetworksExecution_getDuration, (const Execution*, int32_t, uint64_t*))        \
  X(ANeuralNetworksExecution_setInputFromMemory,                                         \
    (Execution*, int32_t, const OperandType*, const Memory*, size_t, size_t))            \
  X(ANeuralNetworksExecution_setOutputFromMemory,                                        \
    (Execution*, int32_t, const OperandType*, const Memory*, size_t, size_t))            \
  X(ANeuralNetworksExecution_startComputeWithDependencies,                               \
    (Execution*, const Event* const*, uint32_t, uint64_t, Event**))

// Destructors return nothing, so they are listed apart. Burst_free is of level 3.
#define NNFARM_NNAPI_DESTRUCTORS(X)         \
  X(ANeuralNetworksMemory_free, Memory)     \
  X(ANeuralNetworksModel_free, Model)       \
  X(ANeuralNetworksCompilation_free, Compilation) \
  X(ANeuralNetworksExecution_free, Execution) \
  X(ANeuralNetworksEvent_free, Event)

// The loaded library. Never unloaded: drivers keep threads running in it.
struct Api {
#define NNFARM_DECLARE(name, parameters) int(*name) parameters = nullptr;
  NNFARM_NNAPI_LEVEL_1(NNFARM_DECLARE)
  NNFARM_NNAPI_LEVEL_2(NNFARM_DECLARE)
  NNFARM_NNAPI_LEVEL_3(NNFARM_DECLARE)
  NNFARM_NNAPI_LEVEL_4(NNFARM_DECLARE)
  NNFARM_NNAPI_LEVEL_5(NNFARM_DECLARE)
  NNFARM_NNAPI_LIBRARY_ONLY(NNFARM_DECLARE)
  NNFARM_NNAPI_OPTIONAL(NNFARM_DECLARE)
#undef NNFARM_DECLARE
#define NNFARM_DECLARE(name, handle) void (*name)(handle*) = nullptr;
  NNFARM_NNAPI_DESTRUCTORS(NNFARM_DECLARE)
  NNFARM_DECLARE(ANeuralNetworksBurst_free, Burst)
#undef NNFARM_DECLARE

  // 1 to 8: what the library says of itself, not more than its entry points allow.
  int feature_level = 0;

  // Opens `path`. Throws NnapiError (nnapi.missing) saying what is not there.
  static Api Load(const std::string& path);
  // Opens the support-library driver at `path`, likewise.
  static Api LoadDriver(const std::string& path);
};

// What NNAPI tells about one of its devices.
struct DeviceInfo {
  const Device* handle;
  std::string name;
  std::string type;  // other, cpu, gpu, accelerator or unknown
  std::string version;
  int feature_level;
};

// Devices in NNAPI's order; empty below level 3, where devices cannot be listed.
// Throws NnapiError (nnapi.missing) when the library fails to tell.
std::vector<DeviceInfo> ListDevices(const Api& api);

// "BAD_DATA (4)" for a message.
std::string ResultName(int result);

// Throws NnapiError `code` naming `function` and the result unless `result` is success. A missed
// deadline is nnapi.timeout whatever `code` says.
void Check(int result, const char* code, const char* function);

// Throws NnapiError `code` naming `function`, which reported success, when it gave nothing.
void RequireMade(const void* made, const char* code, const char* function);

}  // namespace nnapi
}  // namespace nnfarm

#endif  // NNFARM_PLAYER_NNAPI_H_
