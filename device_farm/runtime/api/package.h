// A package folder: the manifest and the parts it names.
#ifndef NNFARM_API_PACKAGE_H_
#define NNFARM_API_PACKAGE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/cpu_features.h"
#include "api/element_type.h"
#include "api/model_options.h"

namespace nnfarm {

struct TensorSpec {
  std::string name;
  const ElementType* type;
  std::vector<int64_t> shape;  // -1 where known only at run time

  // Whether a tensor of `given` is one of this.
  bool Takes(const std::vector<int64_t>& given) const;
};

struct Library {
  std::string path;
  std::string cpu_variant;  // empty: for every device of the ABI
};

struct Package {
  std::string directory;
  std::string entry;
  Library library;     // model.so, or a variant of it
  Library cpu_twin;    // model_cpu.so, or a variant of it
  std::string report;  // path of report.json; empty: none
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  NnapiSettings nnapi_settings;
  int64_t subgraph_count = 0;
  int64_t offloaded_count = 0;
  int64_t operation_count = 0;

  // Reads manifest.json and checks that every part is there with its size.
  // Throws RunError (bad package; usage: what CpuChoice refuses).
  static Package Load(const std::string& directory, CpuChoice choice);

  // Reads the text of a manifest for `directory`; throws ffi::Error ("ValueError"), too.
  static Package Parse(const std::string& directory, std::string_view manifest, CpuChoice choice);

  // What computes when no fallback happens: nnapi, mixed or cpu.
  const char* PlannedEngine() const;
};

}  // namespace nnfarm

#endif  // NNFARM_API_PACKAGE_H_
