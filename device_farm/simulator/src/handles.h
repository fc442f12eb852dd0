// The opaque types of the C interface: each owns or shares one object of the simulator.
#ifndef DEVICE_FARM_SIMULATOR_SRC_HANDLES_H_
#define DEVICE_FARM_SIMULATOR_SRC_HANDLES_H_

#include <memory>
#include <mutex>
#include <thread>

#include "compilation.h"
#include "execution.h"
#include "fence.h"
#include "memory.h"
#include "memory_desc.h"
#include "model.h"
#include "profile.h"
#include "status.h"

struct ANeuralNetworksMemory {
  std::shared_ptr<nnsim::Mapping> mapping;
};

struct ANeuralNetworksMemoryDesc {
  nnsim::MemoryDesc desc;
};

struct ANeuralNetworksModel {
  std::shared_ptr<nnsim::Model> model;
};

struct ANeuralNetworksDevice {
  nnsim::DeviceSpec spec;
};

struct ANeuralNetworksCompilation {
  std::shared_ptr<nnsim::Compilation> compilation;
};

struct ANeuralNetworksExecution {
  std::shared_ptr<nnsim::Execution> execution;
};

struct ANeuralNetworksBurst {
  std::shared_ptr<nnsim::Compilation> compilation;
  std::mutex running;  // held by the execution that computes in it
};

// An asynchronous run, or a fence of the caller. Freeing the event waits for its run.
struct ANeuralNetworksEvent {
  ~ANeuralNetworksEvent() {
    if (thread.joinable()) thread.join();
  }

  std::shared_ptr<nnsim::Fence> fence;
  bool exportable = false;  // startCompute promises no sync fence
  std::thread thread;
};

// Functions of a later feature level answer BAD_STATE on an older phone. They are still exported:
// one library plays all levels.
#define NNSIM_SINCE(level)                                                                    \
  do {                                                                                        \
    if (::nnsim::CurrentProfile().feature_level < (level)) {                                  \
      return ::nnsim::Report(__func__, ::nnsim::BadState("this phone's feature level is "     \
                                                         "below " #level));                   \
    }                                                                                         \
  } while (false)

#define NNSIM_NOT_NULL(pointer)                                                               \
  do {                                                                                        \
    if ((pointer) == nullptr) {                                                               \
      return ::nnsim::Report(__func__, ::nnsim::UnexpectedNull(#pointer " is null"));         \
    }                                                                                         \
  } while (false)

#endif  // DEVICE_FARM_SIMULATOR_SRC_HANDLES_H_
