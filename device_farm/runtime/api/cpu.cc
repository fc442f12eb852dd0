#include "api/cpu.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>

#include "api/run_error.h"
#include "base/ffi_call.h"
#include "base/file.h"

namespace nnfarm {
namespace {

constexpr int kDefaultAffinity = 0;  // tvm::runtime::threading::ThreadGroup: neither big nor little
constexpr size_t kMostCpus = CPU_SETSIZE;
// TVM's workers look for the next task this often before they sleep. Its own 300,000 keep every core
// busy for a tenth of a second after each inference: 148 ms of CPU in a second of idling, with these 1.
constexpr char kSpinCount[] = "2000";

// Models may be opened in several threads. What is there already is not written again: where TVM
// starts a pool it reads, and the C library has no lock for readers.
void SetEnvironment(const char* name, const std::string& value, bool replace) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  const char* present = getenv(name);
  if (present != nullptr && (!replace || value == present)) return;
  if (setenv(name, value.c_str(), replace ? 1 : 0) != 0) ThrowFailed("setenv: " + ErrorText(errno));
}

std::vector<int> AllowedCpus() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
    ThrowFailed("sched_getaffinity: " + ErrorText(errno));
  }
  std::vector<int> cpus;
  for (size_t cpu = 0; cpu < kMostCpus; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

int64_t MaxFrequency(int cpu) {
  std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                     "/cpufreq/cpuinfo_max_freq");
  int64_t kilohertz = 0;
  file >> kilohertz;
  return file ? kilohertz : 0;
}

// All but the slowest kind; all of them where there is one kind, or the kernel tells none.
std::vector<int> BigCpus() {
  std::map<int64_t, std::vector<int>> kinds;
  for (const int cpu : AllowedCpus()) kinds[MaxFrequency(cpu)].push_back(cpu);
  if (kinds.size() > 1) kinds.erase(kinds.begin());
  std::vector<int> cpus;
  for (const auto& kind : kinds) cpus.insert(cpus.end(), kind.second.begin(), kind.second.end());
  std::sort(cpus.begin(), cpus.end());
  return cpus;
}

int HexDigit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

std::vector<int> CpusOfMask(std::string mask) {
  if (mask.rfind("0x", 0) == 0) mask.erase(0, 2);
  std::vector<int> cpus;
  bool good = !mask.empty() && mask.size() <= kMostCpus / 4;
  for (size_t i = 0; good && i < mask.size(); ++i) {
    const int digit = HexDigit(mask[mask.size() - 1 - i]);
    good = digit >= 0;
    for (int bit = 0; good && bit < 4; ++bit) {
      if ((digit >> bit & 1) != 0) cpus.push_back(static_cast<int>(i) * 4 + bit);
    }
  }
  if (!good || cpus.empty()) {
    ThrowUsage("--affinity is big, all or a hexadecimal mask of CPUs, not \"" + mask + "\"");
  }
  return cpus;
}

}  // namespace

void SetThreads(int64_t threads) {
  SetEnvironment("TVM_THREAD_POOL_SPIN_COUNT", kSpinCount, /*replace=*/false);
  if (threads != 0) SetEnvironment("TVM_NUM_THREADS", std::to_string(threads), /*replace=*/true);
}

std::vector<int> ChooseCpus(const std::string& choice) {
  if (choice == "all") return AllowedCpus();
  if (choice == "big") return BigCpus();
  return CpusOfMask(choice);
}

void BindToCpus(const std::vector<int>& cpus) {
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  for (const int cpu : cpus) CPU_SET(static_cast<size_t>(cpu), &wanted);
  if (sched_setaffinity(0, sizeof(wanted), &wanted) != 0) {
    ThrowUsage("--affinity: the system refuses these CPUs: " + ErrorText(errno));
  }
  SetEnvironment("TVM_BIND_THREADS", "0", /*replace=*/true);
}

void StartThreadPool(int64_t threads) {
  CallGlobal("runtime.config_threadpool", int64_t{kDefaultAffinity}, threads);
}

}  // namespace nnfarm
