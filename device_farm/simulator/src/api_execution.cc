// Executions and events.
#include "handles.h"

using nnsim::BadData;
using nnsim::Report;
using nnsim::Status;

namespace {

// Result codes 0 to 3 of getDuration: on hardware or in driver, plain or fenced.
constexpr int32_t kDurationCodes = 4;

int ComputeNow(const char* function, ANeuralNetworksExecution* execution) {
  Status status = execution->execution->Begin();
  if (status.ok()) status = execution->execution->Compute();
  return Report(function, status);
}

int StartCompute(const char* function, ANeuralNetworksExecution* execution,
                 ANeuralNetworksEvent** event) {
  const Status status = execution->execution->Begin();
  if (!status.ok()) return Report(function, status);
  auto started = std::make_unique<ANeuralNetworksEvent>();
  ANeuralNetworksEvent* raw = started.get();
  raw->thread = std::thread([raw, function, shared = execution->execution] {
    raw->result = Report(function, shared->Compute());
  });
  *event = started.release();
  return ANEURALNETWORKS_NO_ERROR;
}

}  // namespace

int ANeuralNetworksExecution_create(ANeuralNetworksCompilation* compilation,
                                    ANeuralNetworksExecution** execution) {
  NNSIM_NOT_NULL(compilation);
  NNSIM_NOT_NULL(execution);
  *execution = nullptr;
  if (!compilation->compilation->finished()) {
    return Report(__func__, nnsim::BadState("the compilation is not finished"));
  }
  *execution = new ANeuralNetworksExecution{
      std::make_shared<nnsim::Execution>(compilation->compilation)};
  return ANEURALNETWORKS_NO_ERROR;
}

void ANeuralNetworksExecution_free(ANeuralNetworksExecution* execution) { delete execution; }

int ANeuralNetworksExecution_setInput(ANeuralNetworksExecution* execution, int32_t index,
                                      const ANeuralNetworksOperandType* type, const void* buffer,
                                      size_t length) {
  NNSIM_NOT_NULL(execution);
  return Report(__func__, execution->execution->SetInput(index, type, buffer, length));
}

int ANeuralNetworksExecution_setInputFromMemory(ANeuralNetworksExecution* execution, int32_t index,
                                                const ANeuralNetworksOperandType* type,
                                                const ANeuralNetworksMemory* memory, size_t offset,
                                                size_t length) {
  NNSIM_NOT_NULL(execution);
  NNSIM_NOT_NULL(memory);
  return Report(__func__, execution->execution->SetFromMapping(true, index, type, memory->mapping,
                                                              offset, length));
}

int ANeuralNetworksExecution_setOutput(ANeuralNetworksExecution* execution, int32_t index,
                                       const ANeuralNetworksOperandType* type, void* buffer,
                                       size_t length) {
  NNSIM_NOT_NULL(execution);
  return Report(__func__, execution->execution->SetOutput(index, type, buffer, length));
}

int ANeuralNetworksExecution_setOutputFromMemory(ANeuralNetworksExecution* execution, int32_t index,
                                                 const ANeuralNetworksOperandType* type,
                                                 const ANeuralNetworksMemory* memory, size_t offset,
                                                 size_t length) {
  NNSIM_NOT_NULL(execution);
  NNSIM_NOT_NULL(memory);
  return Report(__func__, execution->execution->SetFromMapping(false, index, type, memory->mapping,
                                                              offset, length));
}

int ANeuralNetworksExecution_compute(ANeuralNetworksExecution* execution) {
  NNSIM_SINCE(3);
  NNSIM_NOT_NULL(execution);
  return ComputeNow(__func__, execution);
}

int ANeuralNetworksExecution_burstCompute(ANeuralNetworksExecution* execution,
                                          ANeuralNetworksBurst* burst) {
  NNSIM_SINCE(3);
  NNSIM_NOT_NULL(execution);
  NNSIM_NOT_NULL(burst);
  if (burst->compilation.get() != &execution->execution->compilation()) {
    return Report(__func__, BadData("the burst belongs to another compilation"));
  }
  return ComputeNow(__func__, execution);
}

int ANeuralNetworksExecution_startCompute(ANeuralNetworksExecution* execution,
                                          ANeuralNetworksEvent** event) {
  NNSIM_NOT_NULL(event);
  *event = nullptr;
  NNSIM_NOT_NULL(execution);
  return StartCompute(__func__, execution, event);
}

int ANeuralNetworksExecution_startComputeWithDependencies(
    ANeuralNetworksExecution* execution, const ANeuralNetworksEvent* const* dependencies,
    uint32_t dependency_count, uint64_t, ANeuralNetworksEvent** event) {
  NNSIM_SINCE(4);
  NNSIM_NOT_NULL(event);
  *event = nullptr;
  NNSIM_NOT_NULL(execution);
  if (dependency_count != 0) NNSIM_NOT_NULL(dependencies);
  for (uint32_t i = 0; i < dependency_count; ++i) {
    NNSIM_NOT_NULL(dependencies[i]);
    const int result = dependencies[i]->Wait();
    if (result != ANEURALNETWORKS_NO_ERROR) {
      return Report(__func__, {ANEURALNETWORKS_OP_FAILED, "a dependency failed"});
    }
  }
  return StartCompute(__func__, execution, event);
}

int ANeuralNetworksEvent_wait(ANeuralNetworksEvent* event) {
  NNSIM_NOT_NULL(event);
  return event->Wait();
}

void ANeuralNetworksEvent_free(ANeuralNetworksEvent* event) { delete event; }

int ANeuralNetworksEvent_createFromSyncFenceFd(int, ANeuralNetworksEvent** event) {
  NNSIM_SINCE(4);
  NNSIM_NOT_NULL(event);
  *event = nullptr;
  return Report(__func__, BadData("there are no sync fences here"));
}

int ANeuralNetworksEvent_getSyncFenceFd(const ANeuralNetworksEvent* event, int* fd) {
  NNSIM_SINCE(4);
  NNSIM_NOT_NULL(fd);
  *fd = -1;
  NNSIM_NOT_NULL(event);
  return Report(__func__, BadData("the event has no sync fence"));
}

int ANeuralNetworksExecution_getOutputOperandRank(ANeuralNetworksExecution* execution,
                                                  int32_t index, uint32_t* rank) {
  NNSIM_SINCE(3);
  NNSIM_NOT_NULL(execution);
  NNSIM_NOT_NULL(rank);
  return Report(__func__, execution->execution->OutputRank(index, rank));
}

int ANeuralNetworksExecution_getOutputOperandDimensions(ANeuralNetworksExecution* execution,
                                                        int32_t index, uint32_t* dimensions) {
  NNSIM_SINCE(3);
  NNSIM_NOT_NULL(execution);
  NNSIM_NOT_NULL(dimensions);
  return Report(__func__, execution->execution->OutputDimensions(index, dimensions));
}

int ANeuralNetworksExecution_setMeasureTiming(ANeuralNetworksExecution* execution, bool measure) {
  NNSIM_SINCE(3);
  NNSIM_NOT_NULL(execution);
  return Report(__func__, execution->execution->SetMeasureTiming(measure));
}

int ANeuralNetworksExecution_getDuration(const ANeuralNetworksExecution* execution, int32_t code,
                                         uint64_t* duration_ns) {
  NNSIM_SINCE(3);
  NNSIM_NOT_NULL(execution);
  NNSIM_NOT_NULL(duration_ns);
  if (code < 0 || code >= kDurationCodes) return Report(__func__, BadData("no such duration"));
  return Report(__func__, execution->execution->Duration(duration_ns));
}

int ANeuralNetworksExecution_setTimeout(ANeuralNetworksExecution* execution, uint64_t) {
  NNSIM_SINCE(4);
  NNSIM_NOT_NULL(execution);
  Status status = execution->execution->CheckPreparing();
  if (status.ok() && !execution->execution->compilation().one_device()) {
    status = BadData("a timeout needs a compilation for exactly one device");
  }
  return Report(__func__, status);
}

int ANeuralNetworksExecution_setLoopTimeout(ANeuralNetworksExecution* execution,
                                            uint64_t duration_ns) {
  NNSIM_SINCE(4);
  NNSIM_NOT_NULL(execution);
  return Report(__func__, execution->execution->SetLoopTimeout(duration_ns));
}

int ANeuralNetworksExecution_enableInputAndOutputPadding(ANeuralNetworksExecution* execution,
                                                         bool enable) {
  NNSIM_SINCE(5);
  NNSIM_NOT_NULL(execution);
  return Report(__func__, execution->execution->EnablePadding(enable));
}

int ANeuralNetworksExecution_setReusable(ANeuralNetworksExecution* execution, bool reusable) {
  NNSIM_SINCE(5);
  NNSIM_NOT_NULL(execution);
  return Report(__func__, execution->execution->SetReusable(reusable));
}

int ANeuralNetworksExecution_addExtensionAttribute(ANeuralNetworksExecution* execution,
                                                   const char* extension, uint16_t, const void*,
                                                   size_t) {
  NNSIM_SINCE(8);
  NNSIM_NOT_NULL(execution);
  NNSIM_NOT_NULL(extension);
  return Report(__func__, BadData(std::string("extension ") + extension + " is not supported"));
}
