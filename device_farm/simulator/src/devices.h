// The phone's devices as the C interface hands them out.
#ifndef DEVICE_FARM_SIMULATOR_SRC_DEVICES_H_
#define DEVICE_FARM_SIMULATOR_SRC_DEVICES_H_

#include <deque>

#include "handles.h"

namespace nnsim {

const std::deque<ANeuralNetworksDevice>& Devices();

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_DEVICES_H_
