#include "ops/fixed_point.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace nnsim {
namespace {

constexpr int kFractionBits = 15;
constexpr int16_t kOne = std::numeric_limits<int16_t>::max();

template <typename T>
T Saturate(int64_t value) {
  return static_cast<T>(std::clamp<int64_t>(value, std::numeric_limits<T>::min(),
                                            std::numeric_limits<T>::max()));
}

// The upper half of twice a product, to the nearest, halves up.
template <typename T>
T HighProduct(T a, T b) {
  constexpr int64_t kUnit = int64_t{1} << (8 * sizeof(T) - 1);
  const int64_t product = int64_t{a} * b;
  return Saturate<T>((product + (product >= 0 ? kUnit / 2 : 1 - kUnit / 2)) / kUnit);
}

int16_t Product(int16_t a, int16_t b) { return HighProduct<int16_t>(a, b); }

int16_t ShiftLeft(int16_t value, int bits) { return Saturate16(value * (int64_t{1} << bits)); }

int16_t FromReal(double value, int integer_bits = 0) {
  return Saturate16(std::lround(std::ldexp(value, kFractionBits - integer_bits)));
}

// exp of [-1/4, 0): a Taylor series about -1/8.
int16_t ExpOfLastQuarter(int16_t value) {
  const auto x = static_cast<int16_t>(value + FromReal(1.0 / 8));
  const int16_t x2 = Product(x, x), x3 = Product(x2, x), x4 = Product(x2, x2);
  const auto cubic = static_cast<int16_t>(RoundingShift(x4, 2) + x3);
  const int32_t above = RoundingShift(Product(cubic, FromReal(1.0 / 3)) + x2, 1);
  const int16_t at = FromReal(std::exp(-1.0 / 8));
  return Saturate16(at + Product(at, static_cast<int16_t>(x + above)));
}

// exp of a negative number: that of its part within a quarter, times one constant for each bit of
// the rest.
int16_t ExpOfNegative(int16_t value, int integer_bits) {
  constexpr int kLastBit = 4;  // exp(-32) is 0
  if (value == 0) return kOne;
  const int point = kFractionBits - integer_bits;
  const int quarter = 1 << (point - 2);
  const int part = (value & (quarter - 1)) - quarter;
  const int rest = part - value;
  int16_t result = ExpOfLastQuarter(ShiftLeft(static_cast<int16_t>(part), integer_bits));
  for (int bit = -2; bit <= kLastBit && bit < integer_bits; ++bit) {
    if ((rest >> (point + bit)) & 1) {
      result = Product(result, FromReal(std::exp(-std::ldexp(1, bit))));
    }
  }
  return rest >> point >= 2 << kLastBit ? int16_t{0} : result;
}

// 2 / (1 + x) with two integer bits, by division after Newton.
int16_t TwiceReciprocal(int16_t x) {
  const auto half = static_cast<int16_t>((x + kOne + 1) / 2);
  const int16_t slope = FromReal(-32.0 / 17, 2);
  auto estimate = static_cast<int16_t>(FromReal(48.0 / 17, 2) + Product(half, slope));
  for (int step = 0; step < 3; ++step) {
    const auto error = static_cast<int16_t>(FromReal(1, 2) - Product(half, estimate));
    estimate = Saturate16(estimate + ShiftLeft(Product(estimate, error), 2));
  }
  return estimate;
}

}  // namespace

int16_t Saturate16(int64_t value) { return Saturate<int16_t>(value); }
int8_t Saturate8(int64_t value) { return Saturate<int8_t>(value); }

int32_t RoundingShift(int32_t value, int bits) {
  if (bits == 0) return value;
  const int64_t half = int64_t{1} << (bits - 1);
  const int64_t size = (std::abs(int64_t{value}) + half) >> bits;
  return static_cast<int32_t>(value < 0 ? -size : size);
}

Multiplier::Multiplier(double real) {
  const double fraction = std::frexp(real, &shift_);
  const int64_t factor = std::llround(std::ldexp(fraction, 31));
  // A fraction just below 1 rounds to 1.
  const bool full = factor == int64_t{1} << 31;
  factor_ = static_cast<int32_t>(full ? factor / 2 : factor);
  shift_ += full ? 1 : 0;
}

Multiplier Multiplier::InverseRoot(int32_t value) {
  // The definition works on the value times the power of 4 that brings it to 28 or 29 bits.
  int bits = 0;
  std::frexp(value, &bits);
  const int shift = 12 - (31 - bits) / 2;
  const double factor = std::ldexp(1 / std::sqrt(value), 31 + std::max(shift, 0));
  return {Saturate<int32_t>(std::llround(factor)), -std::max(shift, 0)};
}

int32_t Multiplier::operator()(int32_t value) const {
  const auto scaled = Saturate<int32_t>(value * (int64_t{1} << std::max(shift_, 0)));
  return RoundingShift(HighProduct<int32_t>(scaled, factor_), std::max(-shift_, 0));
}

int16_t FixedLogistic(int16_t value, int integer_bits) {
  if (value == 0) return FromReal(0.5);
  const auto negative = static_cast<int16_t>(-std::abs(int{value}));
  const int16_t high = ShiftLeft(TwiceReciprocal(ExpOfNegative(negative, integer_bits)), 1);
  return value > 0 ? high : static_cast<int16_t>(kOne - high);
}

int16_t FixedTanh(int16_t value, int integer_bits) {
  if (value == 0) return 0;
  const auto negative = static_cast<int16_t>(-std::abs(int{value}));
  // Of exp(-2 |x|): one integer bit more doubles what the bits mean.
  const int16_t twice = TwiceReciprocal(ExpOfNegative(negative, integer_bits + 1));
  const int16_t size = ShiftLeft(static_cast<int16_t>(twice - FromReal(1, 2)), 2);
  return value > 0 ? size : static_cast<int16_t>(-size);
}

}  // namespace nnsim
