// The encoded NNAPI model of docs/reference/encoded-model.md, parsed and checked.
#ifndef NNFARM_PLAYER_ENCODED_MODEL_H_
#define NNFARM_PLAYER_ENCODED_MODEL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.h"

namespace nnfarm {

// Where an operand's value comes from.
enum class ValueSource {
  kRuntime,  // model input, model output or temporary
  kInline,   // `data` in the document
  kFile,     // `offset` and `size` in the weights file
  kOmitted,  // optional operand without value
};

struct EncodedOperand {
  int32_t type = 0;
  std::string extension;  // empty: a type of NNAPI itself
  std::vector<uint32_t> dims;
  float scale = 0.0F;
  int32_t zero_point = 0;
  uint32_t channel_dim = 0;
  std::vector<float> channel_scales;
  std::vector<uint8_t> extension_data;  // of extension types only
  ValueSource source = ValueSource::kRuntime;
  std::vector<uint8_t> data;
  uint64_t offset = 0;
  uint64_t size = 0;

  // Bytes of one element; 0 for extension types, which only their driver knows.
  uint32_t ElementSize() const;
  // Whether a dimension is known only at run time.
  bool IsDynamic() const;
};

struct EncodedOperation {
  int32_t code = 0;
  std::string extension;
  std::string name;
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> outputs;
};

struct WeightsReference {
  std::string file;
  uint64_t size = 0;
};

struct EncodedModel {
  Sha256Digest content{};  // of the document's bytes
  std::string symbol;
  int level = 0;
  bool relaxed = false;
  std::optional<WeightsReference> weights;
  std::vector<EncodedOperand> operands;
  std::vector<EncodedOperation> operations;
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> outputs;

  // Parses and checks a whole document: every index, length, product, and that each value is
  // written once before it is read. Throws ffi::Error ("ValueError") naming the place.
  static EncodedModel Parse(std::string_view text);
};

// Bytes of `dims` elements of `element_size`; nothing when the product passes `limit`.
std::optional<uint64_t> TensorSize(const std::vector<uint32_t>& dims, uint32_t element_size,
                                   uint64_t limit);

}  // namespace nnfarm

#endif  // NNFARM_PLAYER_ENCODED_MODEL_H_
