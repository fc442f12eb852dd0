// Memories: mapped files, and memory of the devices' own made from a descriptor.
#include <algorithm>

#include "handles.h"

using nnsim::BadData;
using nnsim::Report;
using nnsim::Status;

int ANeuralNetworksMemory_createFromFd(size_t size, int protect, int fd, size_t offset,
                                       ANeuralNetworksMemory** memory) {
  NNSIM_NOT_NULL(memory);
  *memory = nullptr;
  std::shared_ptr<nnsim::Mapping> mapping;
  const Status status = nnsim::Mapping::Create(fd, protect, offset, size, &mapping);
  if (status.ok()) *memory = new ANeuralNetworksMemory{std::move(mapping)};
  return Report(__func__, status);
}

int ANeuralNetworksMemory_createFromAHardwareBuffer(const AHardwareBuffer* buffer,
                                                    ANeuralNetworksMemory** memory) {
  NNSIM_SINCE(3);
  NNSIM_NOT_NULL(memory);
  *memory = nullptr;
  NNSIM_NOT_NULL(buffer);
  return Report(__func__, {ANEURALNETWORKS_UNMAPPABLE, "there are no hardware buffers here"});
}

void ANeuralNetworksMemory_free(ANeuralNetworksMemory* memory) { delete memory; }

int ANeuralNetworksMemoryDesc_create(ANeuralNetworksMemoryDesc** desc) {
  NNSIM_SINCE(4);
  NNSIM_NOT_NULL(desc);
  *desc = new ANeuralNetworksMemoryDesc;
  return ANEURALNETWORKS_NO_ERROR;
}

void ANeuralNetworksMemoryDesc_free(ANeuralNetworksMemoryDesc* desc) { delete desc; }

int ANeuralNetworksMemoryDesc_addInputRole(ANeuralNetworksMemoryDesc* desc,
                                           const ANeuralNetworksCompilation* compilation,
                                           uint32_t index, float frequency) {
  NNSIM_SINCE(4);
  NNSIM_NOT_NULL(desc);
  NNSIM_NOT_NULL(compilation);
  return Report(__func__, desc->desc.AddRole(compilation->compilation, true, index, frequency));
}

int ANeuralNetworksMemoryDesc_addOutputRole(ANeuralNetworksMemoryDesc* desc,
                                            const ANeuralNetworksCompilation* compilation,
                                            uint32_t index, float frequency) {
  NNSIM_SINCE(4);
  NNSIM_NOT_NULL(desc);
  NNSIM_NOT_NULL(compilation);
  return Report(__func__, desc->desc.AddRole(compilation->compilation, false, index, frequency));
}

int ANeuralNetworksMemoryDesc_setDimensions(ANeuralNetworksMemoryDesc* desc, uint32_t rank,
                                            const uint32_t* dimensions) {
  NNSIM_SINCE(4);
  NNSIM_NOT_NULL(desc);
  if (rank != 0) NNSIM_NOT_NULL(dimensions);
  return Report(__func__, desc->desc.SetDimensions(nnsim::Dims(dimensions, dimensions + rank)));
}

int ANeuralNetworksMemoryDesc_finish(ANeuralNetworksMemoryDesc* desc) {
  NNSIM_SINCE(4);
  NNSIM_NOT_NULL(desc);
  return Report(__func__, desc->desc.Finish());
}

int ANeuralNetworksMemory_createFromDesc(const ANeuralNetworksMemoryDesc* desc,
                                         ANeuralNetworksMemory** memory) {
  NNSIM_SINCE(4);
  NNSIM_NOT_NULL(memory);
  *memory = nullptr;
  NNSIM_NOT_NULL(desc);
  std::shared_ptr<nnsim::Mapping> mapping;
  const Status status = desc->desc.Allocate(&mapping);
  if (status.ok()) *memory = new ANeuralNetworksMemory{std::move(mapping)};
  return Report(__func__, status);
}

int ANeuralNetworksMemory_copy(const ANeuralNetworksMemory* source,
                               const ANeuralNetworksMemory* destination) {
  NNSIM_SINCE(4);
  NNSIM_NOT_NULL(source);
  NNSIM_NOT_NULL(destination);
  const nnsim::Mapping& from = *source->mapping;
  nnsim::Mapping& to = *destination->mapping;
  if (from.size() != to.size()) return Report(__func__, BadData("memories of different sizes"));
  if (!from.initialized()) return Report(__func__, BadData("the source has no value yet"));
  if (from.opaque() && to.opaque() && from.dims() != to.dims()) {
    return Report(__func__, BadData("memories of different shapes"));
  }
  if (&from != &to) std::copy_n(from.data(), from.size(), to.data());
  to.SetInitialized(true);
  return ANEURALNETWORKS_NO_ERROR;
}
