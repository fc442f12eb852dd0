// libFuzzer: the loader of encoded models (player/encoded_model.h).
#include <tvm/ffi/error.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "player/encoded_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    nnfarm::EncodedModel::Parse(
        std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const tvm::ffi::Error& error) {
    // Refusing is what the loader is for, if it is of the kind its header names.
    if (error.kind() != "ValueError") throw;
  }
  return 0;
}
