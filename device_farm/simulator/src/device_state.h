// What a device remembers between executions: how often it ran and how hot it is.
#ifndef DEVICE_FARM_SIMULATOR_SRC_DEVICE_STATE_H_
#define DEVICE_FARM_SIMULATOR_SRC_DEVICE_STATE_H_

#include "interpreter.h"
#include "profile.h"
#include "status.h"

namespace nnsim {

// Counts a run and plays the device's faults at its start: may fail, wait until `deadline` (for
// ever without one) or end the process. `slow_us` is what the run takes longer.
Status StartRun(const DeviceSpec& device, Clock::time_point deadline, double* slow_us);

// How much longer modelled work takes on a phone that has been busy for long; adds `busy_us`.
double HeatUp(double busy_us);

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_DEVICE_STATE_H_
