// What `--bench` is given: kernels to measure, each in a library of its own.
#ifndef NNFARM_RUNNER_BENCH_FILE_H_
#define NNFARM_RUNNER_BENCH_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "api/element_type.h"

namespace nnfarm {

struct BenchTensor {
  std::vector<int64_t> shape;
  const ElementType* type;
};

struct BenchKernel {
  std::string signature;
  std::string library;  // path
  std::vector<BenchTensor> tensors;
  int64_t candidate_count = 0;
};

struct BenchFile {
  int64_t time_limit_ms = 0;
  std::vector<BenchKernel> kernels;

  // Reads the file; libraries stand beside it. Throws RunError (bad package).
  static BenchFile Load(const std::string& path);
};

}  // namespace nnfarm

#endif  // NNFARM_RUNNER_BENCH_FILE_H_
