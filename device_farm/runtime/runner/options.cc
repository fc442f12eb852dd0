#include "runner/options.h"

#include <functional>
#include <map>

#include "api/run_error.h"

namespace nnfarm {
namespace {

constexpr int64_t kMostIterations = 10000000;
constexpr int64_t kMostMilliseconds = 24 * 3600 * 1000;

// What an option does with its value.
using Setter = std::function<void(const std::string&)>;

std::map<std::string, Setter> ValueOptions(Options* options) {
  std::map<std::string, Setter> setters;
  const auto text = [&](const char* name, std::string* value) {
    setters[name] = [=](const std::string& given) {
      if (given.empty()) ThrowUsage(std::string(name) + " needs a value");
      *value = given;
    };
  };
  const auto count = [&](const char* name, int64_t* value, int64_t least, int64_t most) {
    setters[name] = [=](const std::string& given) {
      *value = ParseCount(name, given, least, most);
    };
  };
  text("--package", &options->package);
  text("--bench", &options->bench);
  text("--inputs", &options->inputs);
  text("--outputs", &options->outputs);
  text("--crash-record", &options->crash_record);
  text("--affinity", &options->affinity);
  count("--warmup", &options->warmup, 0, kMostIterations);
  count("--iterations", &options->iterations, 1, kMostIterations);
  count("--min-duration-ms", &options->min_duration_ms, 0, kMostMilliseconds);
  count("--max-iterations", &options->max_iterations, 1, kMostIterations);
  count("--trial-timeout-ms", &options->trial_timeout_ms, 1, kMostMilliseconds);
  return setters;
}

std::map<std::string, bool*> Switches(Options* options, bool* no_trial) {
  return {{"--probe", &options->probe},
          {"--help", &options->help},
          {"--no-trial", no_trial},
          {"--compile-times", &options->compile_times},
          {"--per-op", &options->per_op}};
}

void Check(const Options& options) {
  if (options.probe || options.help) return;
  if (options.package.empty() == options.bench.empty()) {
    ThrowUsage("--package or --bench is needed, one of two; --help tells more");
  }
  if (options.max_iterations < options.iterations) {
    ThrowUsage("--max-iterations is less than --iterations");
  }
  if (options.compile_times && options.CacheDir().empty()) {
    ThrowUsage("--compile-times needs --cache-dir");
  }
}

}  // namespace

std::string Options::CacheDir() const {
  std::string folder;
  for (const auto& [name, value] : model.nnapi_settings) {
    if (name == "cache-dir") folder = value;
  }
  return folder;
}

Options Options::Parse(int argc, char** argv) {
  Options options;
  bool no_trial = false;
  const std::map<std::string, Setter> setters = ValueOptions(&options);
  const std::map<std::string, bool*> switches = Switches(&options, &no_trial);
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (const auto found = switches.find(name); found != switches.end()) {
      *found->second = true;
      continue;
    }
    const char* value = i + 1 < argc ? argv[++i] : nullptr;
    const std::string given = value != nullptr ? value : "";
    const auto setter = setters.find(name);
    bool known = setter != setters.end();
    if (known && value != nullptr) setter->second(given);
    if (!known && name.rfind("--", 0) == 0 && ModelOptions::Knows(name.substr(2))) {
      known = true;
      if (value != nullptr) options.model.Set(name.substr(2), given);
    }
    if (!known) ThrowUsage("unknown option \"" + name + "\"");
    if (value == nullptr) ThrowUsage(name + " needs a value");
  }
  options.trial = !no_trial;
  Check(options);
  return options;
}

const char* UsageText() {
  return "nnfarm_runner --package DIR [--inputs FILE] [--outputs FILE] [options]\n"
         "nnfarm_runner --bench FILE   measure kernels in several schedules\n"
         "nnfarm_runner --probe      describe this device's NNAPI, then exit\n"
         "\n"
         "What to run\n"
         "  --package DIR            folder with manifest.json and the parts\n"
         "  --inputs FILE            safetensors, `[samples, *input shape]`; default zeros\n"
         "  --outputs FILE           safetensors to write\n"
         "  --mode auto|nnapi|cpu    auto: NNAPI with the CPU twin behind it (default)\n"
         "\n"
         "How long to measure\n"
         "  --warmup N               inferences before measuring (3)\n"
         "  --iterations N           least measured inferences (20)\n"
         "  --min-duration-ms N      least measured time (300)\n"
         "  --max-iterations N       most measured inferences (1000)\n"
         "  --per-op                 also the time of each subgraph and CPU operation\n"
         "  --compile-times          compile cold, then from the cache; needs --cache-dir\n"
         "\n"
         "NNAPI\n"
         "  --device NAME|type:TYPE|not:NAME  compile for these devices only\n"
         "  --preference low-power|fast-single-answer|sustained-speed\n"
         "  --priority low|medium|high\n"
         "  --relaxed true|false     float32 may be computed as float16\n"
         "  --compute auto|burst|sync|async\n"
         "  --buffers pointer|memory inputs and outputs in shared memory\n"
         "  --cache-dir DIR          NNAPI's compilation cache\n"
         "  --sl-driver PATH         a support-library driver in NNAPI's place\n"
         "  --compile-timeout-ms N   --execute-timeout-ms N\n"
         "  --nnapi-library PATH     default libneuralnetworks.so\n"
         "\n"
         "Drivers that crash or hang\n"
         "  --no-trial               mode auto: no first execution in a child process\n"
         "  --trial-timeout-ms N     how long that child may take (60000)\n"
         "  --crash-record FILE      do not try again what crashed or hung\n"
         "\n"
         "CPU\n"
         "  --threads N              0: as many as --affinity has CPUs, or TVM's default\n"
         "  --affinity big|all|MASK  CPUs to use; MASK is hexadecimal, 1 is CPU 0\n"
         "  --cpu-variant auto|baseline|NAME  of the package's codes; auto: the fastest it can run\n"
         "\n"
         "One JSON object a line on standard output. Exit codes: 0 done, 2 usage, 3 package,\n"
         "4 inputs, 5 failed, 6 NNAPI failed in mode nnapi, 7 no space for outputs.\n";
}

}  // namespace nnfarm
