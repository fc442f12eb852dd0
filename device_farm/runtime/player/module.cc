// The TVM module kind `nnfarm.nnapi` and the player's global functions.
//
//   ffi.Module.load_from_bytes.nnfarm.nnapi(bytes) -> Module   TVM's loader of embedded modules
//   nnfarm.nnapi.module_create(json) -> Module                 for the compiler, to embed
//   nnfarm.nnapi.set_package_dir(path)                         folder of weights.bin
//   nnfarm.nnapi.set_library(path), set_device(name)           for modules loaded afterwards
//   nnfarm.nnapi.set_option(name, value)                       a setting of runner.md, likewise
//   nnfarm.nnapi.reset_options()                               all settings as they were at first
//   nnfarm.nnapi.probe() -> json                               what this device's NNAPI is
//   nnfarm.nnapi.compile_all()                                 compiles what is loaded
//   nnfarm.nnapi.describe_subgraphs() -> json                  array, one object a subgraph
//   nnfarm.nnapi.measure_durations(bool)                       NNAPI's own times of runs to come
//   nnfarm.nnapi.describe_durations() -> json                  of the last run, likewise an array
#include <tvm/ffi/extra/module.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ffi_call.h"
#include "base/json_writer.h"
#include "player/encoded_model.h"
#include "player/nnapi_library.h"
#include "player/subgraph.h"

namespace nnfarm {
namespace {

// Settings for modules to come, and the subgraphs that live.
class Player {
 public:
  // Process-lifetime by design: modules may die after static objects do.
  static Player& Get() {
    static auto* player = new Player();
    return *player;
  }

  template <typename Change>
  void Configure(Change change) {
    const std::lock_guard<std::mutex> lock(mutex_);
    change(&settings_);
  }

  PlayerSettings settings() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return settings_;
  }

  std::shared_ptr<Subgraph> AddSubgraph(EncodedModel model) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto subgraph = std::make_shared<Subgraph>(std::move(model), settings_);
    subgraphs_.erase(std::remove_if(subgraphs_.begin(), subgraphs_.end(),
                                    [](const auto& entry) { return entry.expired(); }),
                     subgraphs_.end());
    subgraphs_.push_back(subgraph);
    return subgraph;
  }

  std::vector<std::shared_ptr<Subgraph>> LiveSubgraphs() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::shared_ptr<Subgraph>> live;
    for (const auto& entry : subgraphs_) {
      if (auto subgraph = entry.lock()) live.push_back(std::move(subgraph));
    }
    return live;
  }

 private:
  Player() {
    const char* directory = std::getenv("NNFARM_PACKAGE_DIR");
    settings_.package_dir = directory != nullptr ? directory : ".";
  }

  mutable std::mutex mutex_;
  PlayerSettings settings_;
  std::vector<std::weak_ptr<Subgraph>> subgraphs_;
};

// Virtual functions of a module are called by TVM directly, not through the C ABI: none may throw.
class NnapiModule : public ffi::ModuleObj {
 public:
  NnapiModule(std::shared_ptr<Subgraph> subgraph, ffi::Bytes encoded)
      : subgraph_(std::move(subgraph)), encoded_(std::move(encoded)) {}

  const char* kind() const final { return "nnfarm.nnapi"; }

  int GetPropertyMask() const final {
    return ffi::Module::kBinarySerializable | ffi::Module::kRunnable;
  }

  ffi::Optional<ffi::Function> GetFunction(const ffi::String& name) final {
    if (std::string_view(name.data(), name.size()) != subgraph_->symbol()) return std::nullopt;
    return MakeFunction([subgraph = subgraph_](ffi::PackedArgs tensors, ffi::Any*) {
      subgraph->Run(tensors);
    });
  }

  ffi::Bytes SaveToBytes() const final { return encoded_; }

  ffi::String InspectSource(const ffi::String&) const final {
    return ffi::String(encoded_.data(), encoded_.size());
  }

 private:
  const std::shared_ptr<Subgraph> subgraph_;
  const ffi::Bytes encoded_;
};

ffi::Bytes BytesArgument(const ffi::PackedArgs& args) {
  if (args.size() == 1) {
    if (const auto bytes = args[0].try_cast<ffi::Bytes>()) return *bytes;
    if (const auto text = args[0].try_cast<ffi::String>()) {
      return ffi::Bytes(text->data(), text->size());
    }
  }
  throw ffi::Error("TypeError", "one argument is expected: the encoded model as bytes", "");
}

std::string TextArgument(const ffi::PackedArgs& args) {
  if (args.size() == 1) {
    if (const auto text = args[0].try_cast<ffi::String>()) {
      return std::string(text->data(), text->size());
    }
  }
  throw ffi::Error("TypeError", "one argument is expected: a string", "");
}

void CreateModule(ffi::PackedArgs args, ffi::Any* result) {
  const ffi::Bytes encoded = BytesArgument(args);
  EncodedModel model = EncodedModel::Parse(std::string_view(encoded.data(), encoded.size()));
  *result = ffi::Module(ffi::make_object<NnapiModule>(Player::Get().AddSubgraph(std::move(model)),
                                                      encoded));
}

void DescribeSubgraphs(ffi::PackedArgs, ffi::Any* result) {
  std::vector<JsonObject> descriptions;
  for (const auto& subgraph : Player::Get().LiveSubgraphs()) {
    descriptions.push_back(subgraph->Describe());
  }
  *result = ffi::String(JsonArrayText(descriptions));
}

void MeasureDurations(ffi::PackedArgs args, ffi::Any*) {
  const auto measure = args.size() == 1 ? args[0].try_cast<bool>() : std::nullopt;
  if (!measure.has_value()) throw ffi::Error("TypeError", "one argument is expected: a bool", "");
  for (const auto& subgraph : Player::Get().LiveSubgraphs()) subgraph->MeasureDurations(*measure);
}

void DescribeDurations(ffi::PackedArgs, ffi::Any* result) {
  std::vector<JsonObject> descriptions;
  for (const auto& subgraph : Player::Get().LiveSubgraphs()) {
    descriptions.push_back(subgraph->DescribeDurations());
  }
  *result = ffi::String(JsonArrayText(descriptions));
}

void SetOption(ffi::PackedArgs args, ffi::Any*) {
  if (args.size() == 2) {
    const auto name = args[0].try_cast<ffi::String>();
    const auto value = args[1].try_cast<ffi::String>();
    if (name.has_value() && value.has_value()) {
      return Player::Get().Configure([&](PlayerSettings* settings) {
        settings->Set(std::string(name->data(), name->size()),
                      std::string(value->data(), value->size()));
      });
    }
  }
  throw ffi::Error("TypeError", "two strings are expected: a setting's name and value", "");
}

template <typename Callable>
void Register(const char* name, Callable callable) {
  // Loading the player twice into a process is harmless: the later one takes over.
  ffi::Function::SetGlobal(name, MakeFunction(callable), /*override=*/true);
}

// Registers a setter of one member of the settings.
void RegisterSetting(const char* name, std::string PlayerSettings::*member) {
  Register(name, [member](ffi::PackedArgs args, ffi::Any*) {
    std::string value = TextArgument(args);
    Player::Get().Configure(
        [&](PlayerSettings* settings) { settings->*member = std::move(value); });
  });
}

TVM_FFI_STATIC_INIT_BLOCK() {
  Register("ffi.Module.load_from_bytes.nnfarm.nnapi", CreateModule);
  Register("nnfarm.nnapi.module_create", CreateModule);
  RegisterSetting("nnfarm.nnapi.set_package_dir", &PlayerSettings::package_dir);
  RegisterSetting("nnfarm.nnapi.set_library", &PlayerSettings::library);
  RegisterSetting("nnfarm.nnapi.set_device", &PlayerSettings::device);
  Register("nnfarm.nnapi.set_option", SetOption);
  Register("nnfarm.nnapi.reset_options", [](ffi::PackedArgs, ffi::Any*) {
    Player::Get().Configure([](PlayerSettings* settings) { *settings = PlayerSettings(); });
  });
  Register("nnfarm.nnapi.probe", [](ffi::PackedArgs, ffi::Any* result) {
    *result = ffi::String(DescribeNnapi(Player::Get().settings()).Text());
  });
  Register("nnfarm.nnapi.compile_all", [](ffi::PackedArgs, ffi::Any*) {
    for (const auto& subgraph : Player::Get().LiveSubgraphs()) subgraph->Compile();
  });
  Register("nnfarm.nnapi.describe_subgraphs", DescribeSubgraphs);
  Register("nnfarm.nnapi.measure_durations", MeasureDurations);
  Register("nnfarm.nnapi.describe_durations", DescribeDurations);
}

}  // namespace
}  // namespace nnfarm
