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

using Fences = std::vector<std::shared_ptr<nnsim::Fence>>;

Status WaitForAll(const Fences& fences) {
  for (const std::shared_ptr<nnsim::Fence>& fence : fences) {
    if (fence->Wait() != ANEURALNETWORKS_NO_ERROR) {
      return {ANEURALNETWORKS_OP_FAILED, "a dependency failed"};
    }
  }
  return nnsim::Ok();
}

// The run waits for `dependencies` by itself: the caller may signal them after this call.
int StartCompute(const char* function, ANeuralNetworksExecution* execution, Fences dependencies,
                 bool exportable, ANeuralNetworksEvent** event) {
  auto started = std::make_unique<ANeuralNetworksEvent>();
  started->exportable = exportable;
  Status status = nnsim::Fence::Create(&started->fence);
  if (status.ok()) status = execution->execution->Begin();
  if (!status.ok()) return Report(function, status);
  started->thread = std::thread([function, dependencies = std::move(dependencies),
                                 fence = started->fence, run = execution->execution] {
    Status outcome = WaitForAll(dependencies);
    if (outcome.ok()) {
      outcome = run->Compute();
    } else {
      run->Abandon();
    }
    fence->Signal(Report(function, outcome));
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
  const std::unique_lock<std::mutex> turn(burst->running, std::try_to_lock);
  if (!turn.owns_lock()) {
    return Report(__func__, nnsim::BadState("another execution computes in the burst"));
  }
  return ComputeNow(__func__, execution);
}

int ANeuralNetworksExecution_startCompute(ANeuralNetworksExecution* execution,
                                          ANeuralNetworksEvent** event) {
  NNSIM_NOT_NULL(event);
  *event = nullptr;
  NNSIM_NOT_NULL(execution);
  return StartCompute(__func__, execution, {}, false, event);
}

int ANeuralNetworksExecution_startComputeWithDependencies(
    ANeuralNetworksExecution* execution, const ANeuralNetworksEvent* const* dependencies,
    uint32_t dependency_count, uint64_t duration_ns, ANeuralNetworksEvent** event) {
  NNSIM_SINCE(4);
  NNSIM_NOT_NULL(event);
  *event = nullptr;
  NNSIM_NOT_NULL(execution);
  if (dependency_count != 0) NNSIM_NOT_NULL(dependencies);
  Fences fences;
  for (uint32_t i = 0; i < dependency_count; ++i) {
    NNSIM_NOT_NULL(dependencies[i]);
    fences.push_back(dependencies[i]->fence);
  }
  // The duration counts from when all dependencies are done, as the execution's own timeout does.
  if (duration_ns != 0) {
    const Status status = execution->execution->SetTimeout(duration_ns);
    if (!status.ok()) return Report(__func__, status);
  }
  return StartCompute(__func__, execution, std::move(fences), true, event);
}

int ANeuralNetworksEvent_wait(ANeuralNetworksEvent* event) {
  NNSIM_NOT_NULL(event);
  return event->fence->Wait();
}

void ANeuralNetworksEvent_free(ANeuralNetworksEvent* event) { delete event; }

int ANeuralNetworksEvent_createFromSyncFenceFd(int fd, ANeuralNetworksEvent** event) {
  NNSIM_SINCE(4);
  NNSIM_NOT_NULL(event);
  *event = nullptr;
  auto imported = std::make_unique<ANeuralNetworksEvent>();
  imported->exportable = true;
  const Status status = nnsim::Fence::Import(fd, &imported->fence);
  if (status.ok()) *event = imported.release();
  return Report(__func__, status);
}

int ANeuralNetworksEvent_getSyncFenceFd(const ANeuralNetworksEvent* event, int* fd) {
  NNSIM_SINCE(4);
  NNSIM_NOT_NULL(fd);
  *fd = -1;
  NNSIM_NOT_NULL(event);
  if (!event->exportable) return Report(__func__, BadData("startCompute makes no sync fence"));
  return Report(__func__, event->fence->Export(fd));
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

int ANeuralNetworksExecution_setTimeout(ANeuralNetworksExecution* execution,
                                        uint64_t duration_ns) {
  NNSIM_SINCE(4);
  NNSIM_NOT_NULL(execution);
  return Report(__func__, execution->execution->SetTimeout(duration_ns));
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
