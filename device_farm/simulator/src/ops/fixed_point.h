// Arithmetic of 16 and 32 bit integers as quantized recurrent cells define it. Their outputs are
// compared to one unit in 32768, so it is part of the definition how each step rounds.
#ifndef DEVICE_FARM_SIMULATOR_SRC_OPS_FIXED_POINT_H_
#define DEVICE_FARM_SIMULATOR_SRC_OPS_FIXED_POINT_H_

#include <cstdint>

namespace nnsim {

int16_t Saturate16(int64_t value);
int8_t Saturate8(int64_t value);

// value / 2^bits, to the nearest, halves away from zero.
int32_t RoundingShift(int32_t value, int bits);

// A real factor as 31 bits and an exponent. The product is rounded twice: to 32 bits before the
// right shift and after it.
class Multiplier {
 public:
  explicit Multiplier(double real);

  // 1 / sqrt(value), of fewer bits than another factor has; `value` is from 1.
  static Multiplier InverseRoot(int32_t value);

  int32_t operator()(int32_t value) const;

 private:
  Multiplier(int32_t factor, int shift) : factor_(factor), shift_(shift) {}

  int32_t factor_;
  int shift_;  // to the left
};

// Functions of `value` with 15 - integer_bits fraction bits; the result has 15. Polynomials and
// Newton steps of 16 bits: some units beside the real function.
int16_t FixedLogistic(int16_t value, int integer_bits);
int16_t FixedTanh(int16_t value, int integer_bits);  // up to 6 integer bits

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_OPS_FIXED_POINT_H_
