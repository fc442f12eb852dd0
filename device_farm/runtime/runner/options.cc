#include "runner/options.h"

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <map>

#include "runner/runner_error.h"

namespace nnfarm {
namespace {

constexpr int64_t kMostIterations = 10000000;
constexpr int64_t kMostMilliseconds = 24 * 3600 * 1000;
constexpr int64_t kMostThreads = 1024;

// The player's settings that are options, too; it checks their values.
constexpr const char* kNnapiSettings[] = {
    "device", "preference", "priority", "cache-dir", "compile-timeout-ms", "execute-timeout-ms",
    "relaxed", "compute"};

Mode ParseMode(const std::string& text) {
  if (text == "auto") return Mode::kAuto;
  if (text == "nnapi") return Mode::kNnapi;
  if (text == "cpu") return Mode::kCpu;
  ThrowUsage("--mode is auto, nnapi or cpu, not \"" + text + "\"");
}

int64_t ParseCount(const std::string& option, const std::string& text, int64_t least,
                   int64_t most) {
  char* end = nullptr;
  errno = 0;
  const long long number = std::strtoll(text.c_str(), &end, 10);
  if (errno != 0 || text.empty() || *end != '\0' || number < least || number > most) {
    ThrowUsage(option + " is a number from " + std::to_string(least) + " to " +
               std::to_string(most) + ", not \"" + text + "\"");
  }
  return number;
}

// What an option does with its value.
using Setter = std::function<void(const std::string&)>;

std::map<std::string, Setter> ValueOptions(Options* options) {
  std::map<std::string, Setter> setters;
  const auto text = [&](const char* name, std::string* value) {
    setters[name] = [value](const std::string& given) { *value = given; };
  };
  const auto count = [&](const char* name, int64_t* value, int64_t least, int64_t most) {
    setters[name] = [=](const std::string& given) {
      *value = ParseCount(name, given, least, most);
    };
  };
  text("--package", &options->package);
  text("--inputs", &options->inputs);
  text("--outputs", &options->outputs);
  text("--crash-record", &options->crash_record);
  text("--nnapi-library", &options->nnapi_library);
  count("--warmup", &options->warmup, 0, kMostIterations);
  count("--iterations", &options->iterations, 1, kMostIterations);
  count("--min-duration-ms", &options->min_duration_ms, 0, kMostMilliseconds);
  count("--max-iterations", &options->max_iterations, 1, kMostIterations);
  count("--threads", &options->threads, 0, kMostThreads);
  count("--trial-timeout-ms", &options->trial_timeout_ms, 1, kMostMilliseconds);
  for (const char* name : kNnapiSettings) {
    setters["--" + std::string(name)] = [options, name](const std::string& given) {
      options->nnapi_settings.emplace_back(name, given);
    };
  }
  setters["--mode"] = [options](const std::string& given) { options->mode = ParseMode(given); };
  return setters;
}

}  // namespace

Options Options::Parse(int argc, char** argv) {
  Options options;
  const std::map<std::string, Setter> setters = ValueOptions(&options);
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--probe") {
      options.probe = true;
    } else if (name == "--help") {
      options.help = true;
    } else if (name == "--no-trial") {
      options.trial = false;
    } else if (const auto setter = setters.find(name); setter == setters.end()) {
      ThrowUsage("unknown option \"" + name + "\"");
    } else if (++i == argc) {
      ThrowUsage(name + " needs a value");
    } else {
      setter->second(argv[i]);
    }
  }
  if (!options.probe && !options.help && options.package.empty()) {
    ThrowUsage("--package is needed");
  }
  if (options.max_iterations < options.iterations) {
    ThrowUsage("--max-iterations is less than --iterations");
  }
  return options;
}

const char* UsageText() {
  return "nnfarm_runner --package DIR [--inputs FILE] [--outputs FILE] [options]\n"
         "nnfarm_runner --probe\n"
         "  --mode auto|nnapi|cpu   auto: NNAPI with the CPU twin behind it (default)\n"
         "  --device NAME|type:TYPE|not:NAME  compile for these NNAPI devices only\n"
         "  --preference low-power|fast-single-answer|sustained-speed\n"
         "  --priority low|medium|high --relaxed true|false --compute auto|burst|sync|async\n"
         "  --cache-dir DIR --compile-timeout-ms N --execute-timeout-ms N\n"
         "  --nnapi-library PATH    default libneuralnetworks.so\n"
         "  --no-trial              mode auto: no first execution in a child process\n"
         "  --trial-timeout-ms N    default 60000\n"
         "  --crash-record FILE     do not try again what crashed or hung\n"
         "  --warmup N --iterations N --min-duration-ms N --max-iterations N --threads N\n";
}

}  // namespace nnfarm
