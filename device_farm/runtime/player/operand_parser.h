// An operand of the encoded model's document, parsed and checked.
#ifndef NNFARM_PLAYER_OPERAND_PARSER_H_
#define NNFARM_PLAYER_OPERAND_PARSER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "base/json_reader.h"
#include "player/encoded_model.h"

namespace nnfarm {

// These throw ffi::Error ("ValueError") naming the place in the document.

// The vendor extension of an operand or operation; empty: NNAPI itself.
std::string ParseExtension(const JsonValue& json);

// A code of NNAPI itself up to `limit`, or 16 bits inside an extension.
int32_t ParseCode(const JsonValue& json, bool in_extension, int64_t limit);

// `weights`: the file that the operand's constant may lie in.
EncodedOperand ParseOperand(const JsonValue& json, const std::optional<WeightsReference>& weights);

}  // namespace nnfarm

#endif  // NNFARM_PLAYER_OPERAND_PARSER_H_
