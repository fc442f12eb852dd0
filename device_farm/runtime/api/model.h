// A package opened to be run inside an application: NNAPI with the CPU twin behind it.
#ifndef NNFARM_API_MODEL_H_
#define NNFARM_API_MODEL_H_

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/fallback.h"
#include "api/model_options.h"
#include "api/package.h"
#include "api/session.h"

namespace nnfarm {

// Not to be used by two threads at once. Errors are RunErrors.
class Model {
 public:
  Model(const std::string& directory, const ModelOptions& options);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const Package& package() const { return package_; }

  // The tensor of input `index`, allocated for `shape`, which must fit the signature. The same
  // tensor as long as the shape is the same.
  const tvm::ffi::Tensor& PrepareInput(size_t index, const std::vector<int64_t>& shape);

  // One inference on the prepared inputs; by the twin, from then on, where NNAPI fails.
  void Run();

  // Of the last Run; empty before it.
  const std::vector<tvm::ffi::Tensor>& outputs() const { return outputs_; }

  // The JSON object of docs/reference/runtime-api.md.
  std::string Explain() const;

 private:
  // Does `work`; an error of NNAPI moves the model to its twin, or is thrown in mode nnapi.
  void WithTwin(const std::function<void()>& work);
  void OpenLibrary();
  void OpenTwin();
  void CloseSession();
  void RequireInputs() const;

  const ModelOptions options_;
  const Package package_;
  std::vector<std::optional<tvm::ffi::Tensor>> inputs_;
  std::vector<tvm::ffi::Tensor> outputs_;
  std::optional<Session> session_;
  std::optional<Fallback> fallback_;
  Library library_;        // what is loaded
  std::string nnapi_;      // JSON object; empty: not asked
  std::string subgraphs_;  // JSON array
};

}  // namespace nnfarm

#endif  // NNFARM_API_MODEL_H_
