#include "extensions.h"

#include <algorithm>
#include <map>

namespace nnsim {
namespace {

constexpr int kCodeBits = 16;

std::vector<std::string>& Names() {
  static std::vector<std::string> names;
  return names;
}

std::map<int32_t, TypeInfo>& Types() {
  static std::map<int32_t, TypeInfo> types;
  return types;
}

}  // namespace

ExtensionRegistrar::ExtensionRegistrar(const char* name,
                                       std::initializer_list<ExtensionType> types,
                                       std::initializer_list<OpSpec> operations) {
  Names().emplace_back(name);
  for (const ExtensionType& type : types) {
    Types().emplace(ExtensionCode(name, type.code), type.info);
  }
  for (OpSpec operation : operations) {
    operation.code = ExtensionCode(name, static_cast<uint16_t>(operation.code));
    Registrar{operation};
  }
}

int32_t ExtensionCode(const std::string& extension, uint16_t code) {
  const auto found = std::find(Names().begin(), Names().end(), extension);
  if (found == Names().end()) return 0;
  const auto number = static_cast<int32_t>(found - Names().begin()) + 1;
  return number << kCodeBits | code;
}

std::vector<ExtensionType> ExtensionTypes(const std::string& extension) {
  std::vector<ExtensionType> types;
  for (const auto& [code, info] : Types()) {
    if (ExtensionOf(code) == extension) types.push_back({static_cast<uint16_t>(code), info});
  }
  return types;
}

std::string ExtensionOf(int32_t code) {
  const auto number = static_cast<size_t>(static_cast<uint32_t>(code) >> kCodeBits);
  return number == 0 || number > Names().size() ? std::string() : Names()[number - 1];
}

const TypeInfo* FindExtensionType(int32_t type) {
  const auto found = Types().find(type);
  return found == Types().end() ? nullptr : &found->second;
}

}  // namespace nnsim
