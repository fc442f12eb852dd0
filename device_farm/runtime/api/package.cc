#include "api/package.h"

#include <tvm/ffi/error.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "api/run_error.h"
#include "base/file.h"
#include "base/json_reader.h"

namespace nnfarm {
namespace {

constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();
constexpr int64_t kFormatVersion = 1;

std::vector<TensorSpec> ParseSpecs(const JsonValue& json) {
  std::vector<TensorSpec> specs;
  for (const JsonValue& item : json.Items()) {
    TensorSpec spec;
    spec.name = item.Get("name").String();
    const std::string dtype = item.Get("dtype").String();
    spec.type = FindElementType(dtype);
    if (spec.type == nullptr) item.Refuse("unknown dtype " + dtype);
    for (const JsonValue& dim : item.Get("shape").Items()) {
      spec.shape.push_back(dim.Int(-1, std::numeric_limits<int32_t>::max()));
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::string CheckPart(const std::string& directory, const JsonValue& part) {
  const std::string name = part.Get("path").String();
  if (name.empty() || name.find('/') != std::string::npos || name == "..") {
    part.Refuse("path is not a plain file name: " + name);
  }
  const std::string path = directory + "/" + name;
  const auto expected = static_cast<uint64_t>(part.Get("size_bytes").Int(0, kMaxInt64));
  const uint64_t size = File::OpenForRead(path).SizeBytes();
  if (size != expected) {
    ThrowBadPackage(name + ": " + std::to_string(size) + " bytes, " + std::to_string(expected) +
                    " expected");
  }
  return path;
}

void TakeLibrary(const JsonValue& part, const std::string& path, CpuChoice* choice,
                 Library* library) {
  Library found{path, ""};
  if (part.Has("cpu_variant") && !part.Get("cpu_variant").IsNull()) {
    found.cpu_variant = part.Get("cpu_variant").String();
  }
  std::vector<std::string> features;
  if (part.Has("cpu_features")) {
    for (const JsonValue& name : part.Get("cpu_features").Items()) features.push_back(name.String());
  }
  if (choice->Takes(found.cpu_variant, features)) *library = found;
}

void ParseParts(const JsonValue& parts, CpuChoice* choice, Package* package) {
  for (const JsonValue& part : parts.Items()) {
    const std::string path = CheckPart(package->directory, part);
    const std::string role = part.Get("role").String();
    if (role == "library") TakeLibrary(part, path, choice, &package->library);
    if (role == "cpu_twin") TakeLibrary(part, path, choice, &package->cpu_twin);
    if (role == "report") package->report = path;
  }
  // Nothing offloaded: the library may be the twin itself, named once.
  if (package->subgraph_count == 0) {
    if (package->library.path.empty()) package->library = package->cpu_twin;
    if (package->cpu_twin.path.empty()) package->cpu_twin = package->library;
  }
  if (package->library.path.empty()) parts.Refuse("no part has the role library");
  if (package->cpu_twin.path.empty()) parts.Refuse("no part has the role cpu_twin");
  choice->RequireFound();
}

// Optional: `{"preference": "low-power"}`, names and values of the runner's options.
NnapiSettings ParseNnapiSettings(const JsonValue& json) {
  NnapiSettings settings;
  if (!json.Has("nnapi_settings")) return settings;
  const JsonValue given = json.Get("nnapi_settings");
  for (const std::string& name : given.Keys()) {
    // Folders, and code to load, are the device's business and not the package's.
    if (name == "cache-dir" || name == "sl-driver") {
      given.Refuse(name + " can be an option only");
    }
    settings.emplace_back(name, given.Get(name.c_str()).String());
  }
  return settings;
}

}  // namespace

bool TensorSpec::Takes(const std::vector<int64_t>& given) const {
  const auto fits = [](int64_t wanted, int64_t got) {
    return got >= 0 && (wanted == -1 || wanted == got);
  };
  return std::equal(shape.begin(), shape.end(), given.begin(), given.end(), fits);
}

Package Package::Load(const std::string& directory, CpuChoice choice) {
  try {
    return Parse(directory, ReadText(directory + "/manifest.json"), std::move(choice));
  } catch (const tvm::ffi::Error& error) {
    ThrowBadPackage(error.message());
  }
}

Package Package::Parse(const std::string& directory, std::string_view manifest,
                       CpuChoice choice) {
  const JsonValue json = JsonValue::Parse(manifest, "manifest.json");
  if (json.Get("format").String() != "nnfarm.package") json.Refuse("not an nnfarm.package");
  json.Get("format_version").Int(kFormatVersion, kFormatVersion);
  Package package;
  package.directory = directory;
  package.entry = json.Get("entry").String();
  package.inputs = ParseSpecs(json.Get("signature").Get("inputs"));
  package.outputs = ParseSpecs(json.Get("signature").Get("outputs"));
  if (package.outputs.empty()) json.Refuse("the model has no outputs");
  package.subgraph_count = json.Get("subgraph_count").Int(0, kMaxInt64);
  package.offloaded_count = json.Get("offloaded_count").Int(0, kMaxInt64);
  package.operation_count = json.Get("operation_count").Int(0, kMaxInt64);
  package.nnapi_settings = ParseNnapiSettings(json);
  ParseParts(json.Get("parts"), &choice, &package);
  return package;
}

const char* Package::PlannedEngine() const {
  if (subgraph_count == 0) return "cpu";
  return offloaded_count == operation_count ? "nnapi" : "mixed";
}

}  // namespace nnfarm
