// Where and how subgraphs run: what docs/reference/runner.md calls the NNAPI settings.
#ifndef NNFARM_PLAYER_SETTINGS_H_
#define NNFARM_PLAYER_SETTINGS_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace nnfarm {

// How a computation is started.
enum class ComputeCall {
  kAuto,   // by burst, where NNAPI has them
  kBurst,  // level 3; an error where no burst can be had
  kSync,   // level 3
  kAsync,  // started, then waited for
};

// Where inputs and outputs lie while they are computed with.
enum class Buffers {
  kPointer,  // in the caller's tensors
  kMemory,   // in memory shared with the driver; the player copies
};

// Taken by a subgraph when its library is loaded.
struct PlayerSettings {
  std::string package_dir;
  std::string library = "libneuralnetworks.so";
  std::string sl_driver;  // a support-library driver's path, instead of the library
  std::string device;  // NAME, type:TYPE or not:NAME; empty: every device that helps
  std::string cache_dir;  // empty: no compilation cache
  int32_t preference = 1;  // PreferenceCode: fast single answer
  std::optional<int32_t> priority;  // PriorityCode
  std::optional<bool> relaxed;      // instead of what the encoded model says
  std::chrono::nanoseconds compile_timeout{0};  // 0: none
  std::chrono::nanoseconds execute_timeout{0};
  ComputeCall compute = ComputeCall::kAuto;
  Buffers buffers = Buffers::kPointer;

  // Sets one member by its name in runner.md. Throws ffi::Error ("ValueError") for an unknown name
  // or value.
  void Set(const std::string& name, const std::string& value);
};

}  // namespace nnfarm

#endif  // NNFARM_PLAYER_SETTINGS_H_
