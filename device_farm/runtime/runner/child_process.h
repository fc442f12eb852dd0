// Running a piece of work that may crash or hang in a forked child.
#ifndef NNFARM_RUNNER_CHILD_PROCESS_H_
#define NNFARM_RUNNER_CHILD_PROCESS_H_

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace nnfarm {

// How the child ended.
enum class ChildEnd { kDone, kCrashed, kTimedOut };

struct ChildReport {
  ChildEnd end;
  std::vector<std::string> lines;  // what the child said, also when it did not get through
  std::string detail;              // "SIGSEGV (11)"; empty when done
};

// What a child says to its parent, line by line.
using Say = std::function<void(const std::string&)>;

// Runs `work` in a fork of this process and kills it after `limit`. The process must have no
// threads yet: a fork has only the thread that called it. Throws RunError when it cannot fork.
ChildReport RunInChild(const std::function<void(const Say&)>& work,
                       std::chrono::milliseconds limit);

}  // namespace nnfarm

#endif  // NNFARM_RUNNER_CHILD_PROCESS_H_
