#include "api/player_calls.h"

#include "api/run_error.h"
#include "base/ffi_call.h"
#include "player/nnapi_error.h"

namespace nnfarm {
namespace {

std::string CallForText(const char* function) {
  const auto text = CallGlobal(function).cast<ffi::String>();
  return std::string(text.data(), text.size());
}

void SetPlayerOptions(const NnapiSettings& settings) {
  for (const auto& [name, value] : settings) SetPlayerOption(name, value);
}

}  // namespace

void SetPlayerOption(const std::string& name, const std::string& value) {
  CallGlobal("nnfarm.nnapi.set_option", ffi::String(name), ffi::String(value));
}

void ConfigurePlayer(const ModelOptions& options, const Package& package) {
  CallGlobal("nnfarm.nnapi.reset_options");
  CallGlobal("nnfarm.nnapi.set_package_dir", ffi::String(package.directory));
  CallGlobal("nnfarm.nnapi.set_library", ffi::String(options.nnapi_library));
  try {
    SetPlayerOptions(package.nnapi_settings);
  } catch (const ffi::Error& error) {
    ThrowBadPackage("manifest.json: nnapi_settings: " + error.message());
  }
  try {
    SetPlayerOptions(options.nnapi_settings);
  } catch (const ffi::Error& error) {
    ThrowUsage(error.message());
  }
}

Session OpenSession(const std::string& library, const std::string& entry) {
  try {
    return Session(library, entry);
  } catch (const ffi::Error& error) {
    ThrowBadPackage(FileName(library) + ": " + error.message());
  }
}

void CompileSubgraphs() {
  try {
    CallGlobal("nnfarm.nnapi.compile_all");
  } catch (const ffi::Error& error) {
    if (error.kind() == kNnapiErrorKind) throw;
    // The weights are opened here: a missing or cut file.
    ThrowBadPackage(error.message());
  }
}

std::string DescribeSubgraphs() { return CallForText("nnfarm.nnapi.describe_subgraphs"); }

void MeasureDurations(bool measure) { CallGlobal("nnfarm.nnapi.measure_durations", measure); }

std::string DescribeDurations() { return CallForText("nnfarm.nnapi.describe_durations"); }

void AddSubgraph(const JsonValue& subgraph, JsonObject* object) {
  std::vector<std::string> devices;
  for (const JsonValue& name : subgraph.Get("devices").Items()) devices.push_back(name.String());
  std::vector<int64_t> supported;
  for (const JsonValue& count : subgraph.Get("supported_operations").Items()) {
    supported.push_back(count.Int(0, INT64_MAX));
  }
  object->Add("symbol", subgraph.Get("symbol").String())
      .Add("content", subgraph.Get("content").String())
      .Add("compile_us", subgraph.Get("compile_us").Number())
      .Add("operations", subgraph.Get("operations").Int(0, INT64_MAX))
      .Add("devices", devices)
      .Add("supported_operations", supported);
}

std::string DescribeNnapi() { return CallForText("nnfarm.nnapi.probe"); }

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace nnfarm
