// How a package is to be run: what the runner's command line and the C API's options both set.
#ifndef NNFARM_API_MODEL_OPTIONS_H_
#define NNFARM_API_MODEL_OPTIONS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace nnfarm {

enum class Mode { kAuto, kNnapi, kCpu };

// NNAPI settings as the player takes them: names and values, in the order given.
using NnapiSettings = std::vector<std::pair<std::string, std::string>>;

struct ModelOptions {
  Mode mode = Mode::kAuto;
  std::string nnapi_library = "libneuralnetworks.so";
  NnapiSettings nnapi_settings;
  int64_t threads = 0;               // 0: TVM's default
  std::string cpu_variant = "auto";  // or baseline, or the name of one

  // Whether `name` is one of docs/reference/runner.md, without its dashes, that Set takes.
  static bool Knows(const std::string& name);

  // Sets one option. Values of NNAPI settings are checked by the player as a package is opened.
  // Throws RunError (usage) for a name or value that is none.
  void Set(const std::string& name, const std::string& value);
};

// `text` as a number from `least` to `most`. Throws RunError (usage) naming the option.
int64_t ParseCount(const std::string& option, const std::string& text, int64_t least,
                   int64_t most);

}  // namespace nnfarm

#endif  // NNFARM_API_MODEL_OPTIONS_H_
