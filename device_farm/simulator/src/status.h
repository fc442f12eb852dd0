// The outcome of one step: an NNAPI result code and, on failure, one sentence for the log.
#ifndef DEVICE_FARM_SIMULATOR_SRC_STATUS_H_
#define DEVICE_FARM_SIMULATOR_SRC_STATUS_H_

#include <string>
#include <utility>

#include "nnapi.h"

namespace nnsim {

struct [[nodiscard]] Status {
  int code = ANEURALNETWORKS_NO_ERROR;
  std::string message;

  bool ok() const { return code == ANEURALNETWORKS_NO_ERROR; }
};

inline Status Ok() { return {}; }
inline Status BadData(std::string message) {
  return {ANEURALNETWORKS_BAD_DATA, std::move(message)};
}
inline Status BadState(std::string message) {
  return {ANEURALNETWORKS_BAD_STATE, std::move(message)};
}
inline Status UnexpectedNull(std::string message) {
  return {ANEURALNETWORKS_UNEXPECTED_NULL, std::move(message)};
}

// Prints a failure to standard error when NNFARM_SIM_LOG is set (Android prints to logcat) and
// returns its code.
int Report(const char* function, const Status& status);

}  // namespace nnsim

#define NNSIM_REQUIRE(condition, message)                   \
  do {                                                      \
    if (!(condition)) return ::nnsim::BadData(message);     \
  } while (false)

#define NNSIM_RETURN_IF_ERROR(expression)                   \
  do {                                                      \
    if (::nnsim::Status step = (expression); !step.ok()) {  \
      return step;                                          \
    }                                                       \
  } while (false)

#endif  // DEVICE_FARM_SIMULATOR_SRC_STATUS_H_
