// What NNAPI itself says an execution took, from feature level 3.
#ifndef NNFARM_PLAYER_DURATIONS_H_
#define NNFARM_PLAYER_DURATIONS_H_

#include <cstddef>
#include <optional>

#include "base/json_writer.h"
#include "player/nnapi.h"

namespace nnfarm {

struct Durations {
  std::optional<double> hardware_us;  // on the device alone
  std::optional<double> driver_us;    // the way through the driver included

  // Adds those that are known to `object`, under their names.
  void AddTo(JsonObject* object) const;
};

// NNAPI tells durations of what is compiled for one device.
bool CanMeasureDurations(const nnapi::Api& api, size_t device_count);

// Asks for the durations of an execution that has not started; false where NNAPI refuses.
bool AskForDurations(const nnapi::Api& api, nnapi::Execution* execution);

// Of an execution that was asked and is done. Devices that have no clock tell nothing.
Durations ReadDurations(const nnapi::Api& api, const nnapi::Execution* execution);

}  // namespace nnfarm

#endif  // NNFARM_PLAYER_DURATIONS_H_
