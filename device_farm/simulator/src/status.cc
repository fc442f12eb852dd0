#include "status.h"

#include <cstdio>
#include <cstdlib>

namespace nnsim {

int Report(const char* function, const Status& status) {
  static const bool log = std::getenv("NNFARM_SIM_LOG") != nullptr;
  if (log && !status.ok()) {
    std::fprintf(stderr, "nnapi simulator: %s: %s (%d)\n", function, status.message.c_str(),
                 status.code);
  }
  return status.code;
}

}  // namespace nnsim
