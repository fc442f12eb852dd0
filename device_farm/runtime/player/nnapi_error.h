// The one error that means "NNAPI did not do it": callers fall back to the CPU twin on it.
#ifndef NNFARM_PLAYER_NNAPI_ERROR_H_
#define NNFARM_PLAYER_NNAPI_ERROR_H_

#include <tvm/ffi/error.h>

#include <string>

namespace nnfarm {

// Fallback codes of docs/reference/runner.md that the player itself can tell.
namespace fallback_code {
inline constexpr char kMissing[] = "nnapi.missing";
inline constexpr char kLevelTooLow[] = "nnapi.level_too_low";
inline constexpr char kModelRefused[] = "nnapi.model_refused";
inline constexpr char kCompileFailed[] = "nnapi.compile_failed";
inline constexpr char kExecuteFailed[] = "nnapi.execute_failed";
inline constexpr char kTimeout[] = "nnapi.timeout";
inline constexpr char kExtensionUnsupported[] = "nnapi.extension_unsupported";
}  // namespace fallback_code

inline constexpr char kNnapiErrorKind[] = "NnapiError";

// Throws ffi::Error of kind NnapiError; the message is `<code>: <detail>`, which the runner splits.
[[noreturn]] inline void ThrowNnapiError(const char* code, const std::string& detail) {
  throw tvm::ffi::Error(kNnapiErrorKind, std::string(code) + ": " + detail, "");
}

}  // namespace nnfarm

#endif  // NNFARM_PLAYER_NNAPI_ERROR_H_
