#include "runner/runner_main.h"

#include <csignal>
#include <cstdio>
#include <exception>

#include "api/run_error.h"
#include "base/log.h"
#include "runner/bench.h"
#include "runner/events.h"
#include "runner/options.h"
#include "runner/run.h"

namespace {

int Fail(nnfarm::ExitCode exit_code, const std::string& code, const std::string& detail) {
  nnfarm::LogLine(detail);
  nnfarm::Emit(nnfarm::NewEvent("error").Add("code", code).Add("detail", detail));
  return static_cast<int>(exit_code);
}

}  // namespace

int nnfarm_runner_main(int argc, char** argv) {
  // A full disk or a limit on file sizes is an error to report, not a reason to die.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    const nnfarm::Options options = nnfarm::Options::Parse(argc, argv);
    if (options.help) {
      std::fputs(nnfarm::UsageText(), stdout);
    } else if (options.probe) {
      nnfarm::Probe(options);
    } else if (!options.bench.empty()) {
      nnfarm::RunBench(options.bench);
    } else {
      nnfarm::RunPackage(options);
    }
    return static_cast<int>(nnfarm::ExitCode::kDone);
  } catch (const nnfarm::RunError& error) {
    return Fail(error.exit_code(), error.code(), error.what());
  } catch (const std::exception& error) {
    return Fail(nnfarm::ExitCode::kFailed, "runner.failed", error.what());
  }
}
