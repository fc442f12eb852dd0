// FULLY_CONNECTED and BATCH_MATMUL.
#include <algorithm>

#include "kernels.h"
#include "op_registry.h"
#include "ops/conv.h"
#include "parallel.h"

namespace nnsim::ops_matmul {
namespace {

Status PrepareFullyConnected(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 2, 4));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 1, 2, 2));
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 2, 1, 1));
  NNSIM_RETURN_IF_ERROR(CheckActivation(call.Int(3)));
  const Dims& weights = call.Shape(1);
  NNSIM_REQUIRE(call.Shape(2)[0] == weights[0], "the bias needs one value a unit");
  // An empty batch is legal in an execution: its elements say nothing about the depth.
  const uint64_t count = call.In(0).count();
  NNSIM_REQUIRE(weights[1] > 0 && count % weights[1] == 0,
                "the input is not made of rows of " + std::to_string(weights[1]));
  if (IsQuantized(call.In(0).type) && !(call.Out().scale > call.In(0).scale * call.In(1).scale)) {
    call.Need(3);
  }
  call.SetOut(0, {static_cast<uint32_t>(count / weights[1]), weights[0]});
  call.SetMacs(static_cast<double>(count) * weights[0]);
  return Ok();
}

// Rows times packed columns, split over whichever there are more of.
void Multiply(GemmArgs all) {
  const size_t panels = (all.n + kPanel - 1) / kPanel;
  const auto columns = [&](size_t begin, size_t end) {
    GemmArgs part = all;
    part.packed += begin * kPanel * all.k;
    part.bias += begin * kPanel;
    part.c += begin * kPanel;
    part.n = std::min(all.n, end * kPanel) - begin * kPanel;
    Gemm(part);
  };
  const auto rows = [&](size_t begin, size_t end) {
    GemmArgs part = all;
    part.a += begin * all.lda;
    part.c += begin * all.ldc;
    part.m = end - begin;
    Gemm(part);
  };
  // Below some ten thousand products a thread costs more than it saves.
  const size_t grain = 32768 / (all.k + 1) + 1;
  if (panels > all.m) {
    ParallelFor(panels, grain / (kPanel * all.m + 1) + 1, columns);
  } else {
    ParallelFor(all.m, grain / (all.n + 1) + 6, rows);
  }
}

void ExecuteFullyConnected(Call& call) {
  const Dims& weights = call.Shape(1);
  const size_t units = weights[0], depth = weights[1];
  const std::vector<float>& panels = call.Derived(
      1, "panels", [&] { return PackPanels(call.Values(1), units, depth); });
  const Range range = FusedRange(call.Int(3));
  Multiply({call.Values(0), depth, panels.data(), call.Values(2), call.Results(), units,
            call.Out().dims[0], units, depth, range.low, range.high});
}

Status PrepareBatchMatmul(Call& call) {
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 0, 2, 4));
  const uint32_t rank = call.Rank(0);
  NNSIM_RETURN_IF_ERROR(CheckRank(call, 1, rank, rank));
  Dims a = call.Shape(0), b = call.Shape(1);
  if (call.Bool(2)) std::swap(a[rank - 1], a[rank - 2]);
  if (call.Bool(3)) std::swap(b[rank - 1], b[rank - 2]);
  NNSIM_REQUIRE(std::equal(a.begin(), a.end() - 2, b.begin()), "the batches differ");
  NNSIM_REQUIRE(a[rank - 1] == b[rank - 2], "the inner dimensions differ");
  Dims out = a;
  out[rank - 1] = b[rank - 1];
  call.SetOut(0, out);
  call.SetMacs(static_cast<double>(call.Out().count()) * a[rank - 1]);
  return Ok();
}

std::vector<float> Transposed(const float* matrix, size_t rows, size_t columns) {
  std::vector<float> out(rows * columns);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns; ++c) out[c * rows + r] = matrix[r * columns + c];
  }
  return out;
}

void MatmulInt(const int32_t* a, const int32_t* b, const GemmArgs& shape, bool adjoint_a,
               bool adjoint_b, int32_t* out) {
  for (size_t m = 0; m < shape.m; ++m) {
    for (size_t n = 0; n < shape.n; ++n) {
      uint32_t sum = 0;
      for (size_t k = 0; k < shape.k; ++k) {
        const int32_t x = a[adjoint_a ? k * shape.m + m : m * shape.k + k];
        const int32_t y = b[adjoint_b ? n * shape.k + k : k * shape.n + n];
        sum += static_cast<uint32_t>(x) * static_cast<uint32_t>(y);
      }
      out[m * shape.n + n] = static_cast<int32_t>(sum);
    }
  }
}

void ExecuteBatchMatmul(Call& call) {
  const size_t rank = call.Rank(0);
  const Dims& out = call.Out().dims;
  const bool adjoint_a = call.Bool(2), adjoint_b = call.Bool(3);
  const size_t m = out[rank - 2], n = out[rank - 1];
  const size_t k = call.Shape(0)[adjoint_a ? rank - 2 : rank - 1];
  const std::vector<float> zeros(n, 0.0f);
  const Range range;
  GemmArgs args{nullptr, k, nullptr, zeros.data(), nullptr, n, m, n, k, range.low, range.high};
  const size_t batches = m * n == 0 ? 0 : call.Out().count() / (m * n);
  if (call.In(0).type == ANEURALNETWORKS_TENSOR_INT32) {
    for (size_t i = 0; i < batches; ++i) {
      MatmulInt(call.Data<int32_t>(0) + i * m * k, call.Data<int32_t>(1) + i * k * n, args,
                adjoint_a, adjoint_b, call.OutData<int32_t>() + i * m * n);
    }
    return;
  }
  const float* a = call.Values(0);
  const float* b = call.Values(1);
  float* c = call.Results();
  for (size_t i = 0; i < batches; ++i) {
    std::vector<float> left, right;
    if (adjoint_a) left = Transposed(a + i * m * k, k, m);
    if (!adjoint_b) right = Transposed(b + i * k * n, k, n);
    const std::vector<float> panels =
        PackPanels(adjoint_b ? b + i * k * n : right.data(), n, k);
    args.a = adjoint_a ? left.data() : a + i * m * k;
    args.packed = panels.data();
    args.c = c + i * m * n;
    Multiply(args);
  }
}

const Registrar kOps{
    {9, "FULLY_CONNECTED", kCommonTypes, {{1, "XXzi>X"}}, PrepareFullyConnected,
     ExecuteFullyConnected},
    {102, "BATCH_MATMUL", "F6 H6 I6 S6", {{6, "XXbb>X"}}, PrepareBatchMatmul, ExecuteBatchMatmul},
};

}  // namespace
}  // namespace nnsim::ops_matmul
