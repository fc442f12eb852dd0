#include "kernels.h"

#if defined(__aarch64__)
#define NNSIM_TILE_ROWS 6  // 24 of 32 registers
#else
#define NNSIM_TILE_ROWS 2  // 8 of 16 registers
#endif

namespace nnsim::baseline {
#include "kernels.inc"
}  // namespace nnsim::baseline
