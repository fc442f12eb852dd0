// Compiled with -mavx2 -mfma; only called after the CPU said it has both.
#include "kernels.h"

#define NNSIM_TILE_ROWS 6  // 12 of 16 registers

namespace nnsim::avx2 {
#include "kernels.inc"
}  // namespace nnsim::avx2
