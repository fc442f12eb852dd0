// Errors that end the run, with the exit code and the event's code of docs/reference/runner.md.
#ifndef NNFARM_API_RUN_ERROR_H_
#define NNFARM_API_RUN_ERROR_H_

#include <stdexcept>
#include <string>
#include <utility>

namespace nnfarm {

enum class ExitCode {
  kDone = 0,
  kUsage = 2,
  kBadPackage = 3,
  kBadInputs = 4,
  kFailed = 5,
  kNnapiFailed = 6,
  kStorageFull = 7,
};

class RunError : public std::runtime_error {
 public:
  RunError(ExitCode exit_code, std::string code, const std::string& detail)
      : std::runtime_error(detail), exit_code_(exit_code), code_(std::move(code)) {}

  ExitCode exit_code() const { return exit_code_; }
  const std::string& code() const { return code_; }

 private:
  ExitCode exit_code_;
  std::string code_;
};

[[noreturn]] inline void ThrowUsage(const std::string& detail) {
  throw RunError(ExitCode::kUsage, "runner.usage", detail);
}
[[noreturn]] inline void ThrowBadPackage(const std::string& detail) {
  throw RunError(ExitCode::kBadPackage, "runner.bad_package", detail);
}
[[noreturn]] inline void ThrowBadInputs(const std::string& detail) {
  throw RunError(ExitCode::kBadInputs, "runner.bad_inputs", detail);
}
[[noreturn]] inline void ThrowFailed(const std::string& detail) {
  throw RunError(ExitCode::kFailed, "runner.failed", detail);
}

}  // namespace nnfarm

#endif  // NNFARM_API_RUN_ERROR_H_
