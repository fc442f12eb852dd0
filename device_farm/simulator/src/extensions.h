// Vendor extensions: operand types and operations beside NNAPI's own. Each file of src/extensions
// registers one; nothing else lists them.
#ifndef DEVICE_FARM_SIMULATOR_SRC_EXTENSIONS_H_
#define DEVICE_FARM_SIMULATOR_SRC_EXTENSIONS_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "op_registry.h"
#include "tensor.h"

namespace nnsim {

// A type of an extension; `info.letter` is one that no other type has.
struct ExtensionType {
  uint16_t code;
  TypeInfo info;
};

class ExtensionRegistrar {
 public:
  // Codes of `operations` are those inside the extension.
  ExtensionRegistrar(const char* name, std::initializer_list<ExtensionType> types,
                     std::initializer_list<OpSpec> operations);
};

// The code of an extension's type or operation in this process: the extension's number, from 1, in
// the high 16 bits. 0 for an extension nobody registered.
int32_t ExtensionCode(const std::string& extension, uint16_t code);

// The types of an extension; empty for one nobody registered.
std::vector<ExtensionType> ExtensionTypes(const std::string& extension);

// Name of the extension a code belongs to; empty for a code of NNAPI itself.
std::string ExtensionOf(int32_t code);

// Null for a code of NNAPI itself, or one that no extension has.
const TypeInfo* FindExtensionType(int32_t type);

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_EXTENSIONS_H_
