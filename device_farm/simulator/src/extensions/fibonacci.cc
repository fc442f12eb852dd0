// com.example.fibonacci, the example of NNAPI's documentation of vendor extensions: a sequence in
// floats, or in integers of 64 bits with a scale and a zero point given as extension data.
#include <cmath>
#include <cstring>

#include "extensions.h"

namespace nnsim::extension_fibonacci {
namespace {

constexpr char kName[] = "com.example.fibonacci";

// Types: EXAMPLE_INT64, a scalar; EXAMPLE_TENSOR_QUANT64_ASYMM.
constexpr uint16_t kInt64 = 0;
constexpr uint16_t kQuant64 = 1;

// The extension data of a tensor of kQuant64.
struct Quant64 {
  double scale;
  int64_t zero_point;
};

// Later numbers of the sequence have no int64.
constexpr int kMostNumbers = 92;

Quant64 NumbersOf(const Tensor& tensor) {
  Quant64 numbers;
  std::memcpy(&numbers, tensor.extension_data.data(), sizeof numbers);
  return numbers;
}

Status CheckOutput(const Tensor& output) {
  if (output.type == ANEURALNETWORKS_TENSOR_FLOAT32) return Ok();
  NNSIM_REQUIRE(output.extension_data.size() == sizeof(Quant64),
                "the sequence needs its scale and zero point as extension data");
  NNSIM_REQUIRE(NumbersOf(output).scale > 0, "the scale is not above 0");
  return Ok();
}

Status Prepare(Call& call) {
  NNSIM_REQUIRE(call.In(0).count() == 1, "n is one number");
  NNSIM_RETURN_IF_ERROR(CheckOutput(call.Out()));
  const bool is_real = call.In(0).type == ANEURALNETWORKS_TENSOR_FLOAT32;
  const double n = is_real ? call.Real(0) : static_cast<double>(call.Int64(0));
  NNSIM_REQUIRE(n >= 1 && n <= kMostNumbers && n == std::floor(n),
                "n is a whole number from 1 to " + std::to_string(kMostNumbers));
  call.SetOut(0, {static_cast<uint32_t>(n)});
  return Ok();
}

int64_t Stored(int64_t number, const Quant64& numbers) {
  return std::llround(static_cast<double>(number) / numbers.scale) + numbers.zero_point;
}

void Execute(Call& call) {
  const Tensor& output = call.Out();
  const bool is_real = output.type == ANEURALNETWORKS_TENSOR_FLOAT32;
  uint64_t number = 1, next = 1;  // unsigned: the sum after the last number may wrap
  for (uint64_t i = 0; i < output.count(); ++i) {
    if (is_real) {
      call.OutData<float>()[i] = static_cast<float>(number);
    } else {
      const int64_t stored = Stored(static_cast<int64_t>(number), NumbersOf(output));
      std::memcpy(output.data + i * sizeof stored, &stored, sizeof stored);
    }
    const uint64_t sum = number + next;
    number = next;
    next = sum;
  }
}

const ExtensionRegistrar kExtension{
    kName,
    {{kInt64, {"EXAMPLE_INT64", 'l', 8, false, 3}},
     {kQuant64, {"EXAMPLE_TENSOR_QUANT64_ASYMM", 'L', 8, true, 3}}},
    {{0, "EXAMPLE_FIBONACCI", "", {{3, "F>F"}, {3, "l>L"}}, Prepare, Execute}}};

}  // namespace
}  // namespace nnsim::extension_fibonacci
