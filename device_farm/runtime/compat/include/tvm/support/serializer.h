// Byte forms of the types TVM's runtime stores: little-endian numbers, containers by a 64-bit count.
#ifndef TVM_SUPPORT_SERIALIZER_H_
#define TVM_SUPPORT_SERIALIZER_H_

#include <dlpack/dlpack.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/endian.h>
#include <tvm/ffi/string.h>
#include <tvm/support/io.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace tvm {
namespace support {

static_assert(TVM_FFI_IO_NO_ENDIAN_SWAP, "every Android and Linux target here is little-endian");

// Numbers and enumerations: their bytes.
template <typename T>
struct Serializer {
  static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>, "no byte form for this type");
  static constexpr bool enabled = true;

  static void Write(Stream* stream, const T& value) { stream->Write(&value, sizeof(T)); }
  static bool Read(Stream* stream, T* value) { return stream->Read(value, sizeof(T)) == sizeof(T); }
};

template <>
struct Serializer<DLDataType> {
  static constexpr bool enabled = true;

  static void Write(Stream* stream, const DLDataType& type) {
    stream->Write(type.code);
    stream->Write(type.bits);
    stream->Write(type.lanes);
  }
  static bool Read(Stream* stream, DLDataType* type) {
    return stream->Read(&type->code) && stream->Read(&type->bits) && stream->Read(&type->lanes);
  }
};

template <>
struct Serializer<DLDevice> {
  static constexpr bool enabled = true;

  static void Write(Stream* stream, const DLDevice& device) {
    stream->Write(static_cast<int32_t>(device.device_type));
    stream->Write(static_cast<int32_t>(device.device_id));
  }
  static bool Read(Stream* stream, DLDevice* device) {
    int32_t type = 0;
    int32_t id = 0;
    if (!stream->Read(&type) || !stream->Read(&id)) return false;
    *device = {static_cast<DLDeviceType>(type), id};
    return true;
  }
};

template <>
struct Serializer<std::string> {
  static constexpr bool enabled = true;

  static void Write(Stream* stream, const std::string& text) {
    stream->Write(static_cast<uint64_t>(text.size()));
    stream->Write(text.data(), text.size());
  }
  static bool Read(Stream* stream, std::string* text) {
    // Grown as it is read: a damaged count ends the data, it does not take all memory.
    constexpr uint64_t kChunk = 1 << 20;
    uint64_t left = 0;
    if (!stream->Read(&left)) return false;
    text->clear();
    while (left > 0) {
      const auto size = static_cast<size_t>(std::min(left, kChunk));
      const size_t start = text->size();
      text->resize(start + size);
      if (stream->Read(&(*text)[start], size) != size) return false;
      left -= size;
    }
    return true;
  }
};

template <typename T>
struct Serializer<std::vector<T>> {
  static constexpr bool enabled = true;

  static void Write(Stream* stream, const std::vector<T>& values) {
    stream->Write(static_cast<uint64_t>(values.size()));
    stream->WriteArray(values.data(), values.size());
  }
  static bool Read(Stream* stream, std::vector<T>* values) {
    uint64_t count = 0;
    if (!stream->Read(&count)) return false;
    values->clear();
    for (uint64_t i = 0; i < count; ++i) {
      T value{};
      if (!stream->Read(&value)) return false;
      values->push_back(std::move(value));
    }
    return true;
  }
};

template <>
struct Serializer<ffi::String> {
  static constexpr bool enabled = true;

  static void Write(Stream* stream, const ffi::String& text) {
    stream->Write(std::string(text.data(), text.size()));
  }
  static bool Read(Stream* stream, ffi::String* text) {
    std::string read;
    if (!stream->Read(&read)) return false;
    *text = ffi::String(std::move(read));
    return true;
  }
};

template <typename T>
struct Serializer<ffi::Array<T>> {
  static constexpr bool enabled = true;

  static void Write(Stream* stream, const ffi::Array<T>& values) {
    stream->Write(static_cast<uint64_t>(values.size()));
    for (const T& value : values) stream->Write(value);
  }
  static bool Read(Stream* stream, ffi::Array<T>* values) {
    std::vector<T> read;
    if (!stream->Read(&read)) return false;
    *values = ffi::Array<T>(read.begin(), read.end());
    return true;
  }
};

}  // namespace support
}  // namespace tvm

#endif  // TVM_SUPPORT_SERIALIZER_H_
