// libFuzzer: the reader of manifests (api/package.h), in a folder that has none of the parts.
#include <tvm/ffi/error.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/package.h"
#include "api/run_error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    nnfarm::Package::Parse("/nonexistent",
                           std::string_view(reinterpret_cast<const char*>(data), size),
                           nnfarm::CpuChoice("auto", {"asimddp"}));
  } catch (const nnfarm::RunError&) {
  } catch (const tvm::ffi::Error& error) {
    if (error.kind() != "ValueError" && error.kind() != "OSError") throw;
  }
  return 0;
}
