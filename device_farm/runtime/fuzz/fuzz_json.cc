// libFuzzer: the JSON reader (base/json_reader.h), asked for every type at every place.
#include <tvm/ffi/error.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "base/json_reader.h"

namespace {

template <typename Read>
void Try(Read read) {
  try {
    read();
  } catch (const tvm::ffi::Error& error) {
    if (error.kind() != "ValueError") throw;
  }
}

void Visit(const nnfarm::JsonValue& value) {
  Try([&] { value.Int(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()); });
  Try([&] { value.Number(); });
  Try([&] { value.Bool(); });
  Try([&] { value.String(); });
  Try([&] {
    for (const nnfarm::JsonValue& item : value.Items()) Visit(item);
  });
  Try([&] {
    // Names with a zero byte cannot be asked for as C strings; the reader refuses such text.
    for (const std::string& key : value.Keys()) {
      Try([&] { Visit(value.Get(key.c_str())); });
    }
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Try([&] {
    Visit(nnfarm::JsonValue::Parse(std::string_view(reinterpret_cast<const char*>(data), size),
                                   "document"));
  });
  return 0;
}
