#include "runner/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <limits>

#include "api/run_error.h"
#include "base/file.h"

namespace nnfarm {
namespace {

using Clock = std::chrono::steady_clock;

// Tells a child that got through from one whose driver called exit().
constexpr int kDoneStatus = 42;

void WriteAll(int descriptor, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = write(descriptor, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // the parent is gone; nobody listens
    done += static_cast<size_t>(written);
  }
}

[[noreturn]] void RunChild(const std::function<void(const Say&)>& work, int descriptor) {
  // A crash must end the child at once: TVM's handler prints a backtrace and may hang doing it.
  for (const int signal_number : {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE}) {
    std::signal(signal_number, SIG_DFL);
  }
  work([descriptor](const std::string& line) { WriteAll(descriptor, line + "\n"); });
  // No destructors: the driver's own threads may still run.
  _exit(kDoneStatus);
}

// Reads until the child closes its end; false when `deadline` passes first.
bool ReadUntil(int descriptor, Clock::time_point deadline, std::string* text) {
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd ready{descriptor, POLLIN, 0};
    const int count = poll(&ready, 1, static_cast<int>(std::min<int64_t>(left, 1000)));
    if (count < 0 && errno != EINTR) ThrowFailed("poll: " + ErrorText(errno));
    if (count <= 0) continue;
    char buffer[4096];
    const ssize_t size = read(descriptor, buffer, sizeof(buffer));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return true;
    text->append(buffer, static_cast<size_t>(size));
  }
}

int WaitFor(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

const char* SignalName(int signal_number) {
  switch (signal_number) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGABRT: return "SIGABRT";
    case SIGILL: return "SIGILL";
    case SIGFPE: return "SIGFPE";
    case SIGKILL: return "SIGKILL";
    case SIGSYS: return "SIGSYS";
    default: return "signal";
  }
}

void Describe(int status, ChildReport* report) {
  if (WIFSIGNALED(status)) {
    const int signal_number = WTERMSIG(status);
    report->end = ChildEnd::kCrashed;
    report->detail = std::string(SignalName(signal_number)) + " (" +
                     std::to_string(signal_number) + ")";
  } else if (WEXITSTATUS(status) != kDoneStatus) {
    report->end = ChildEnd::kCrashed;
    report->detail = "the process left with status " + std::to_string(WEXITSTATUS(status));
  }
}

std::vector<std::string> SplitLines(const std::string& text) {
  std::vector<std::string> lines;
  size_t start = 0;
  // A line without its end was cut by the crash.
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

}  // namespace

ChildReport RunInChild(const std::function<void(const Say&)>& work,
                       std::chrono::milliseconds limit) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) ThrowFailed("pipe: " + ErrorText(errno));
  File reader(ends[0]);
  File writer(ends[1]);
  std::fflush(nullptr);  // or the child would write our buffered lines again
  const pid_t child = fork();
  if (child < 0) ThrowFailed("fork: " + ErrorText(errno));
  if (child == 0) RunChild(work, writer.descriptor());
  writer.Close();
  std::string text;
  ChildReport report{ChildEnd::kDone, {}, ""};
  if (ReadUntil(reader.descriptor(), Clock::now() + limit, &text)) {
    Describe(WaitFor(child), &report);
  } else {
    kill(child, SIGKILL);
    WaitFor(child);
    report.end = ChildEnd::kTimedOut;
    report.detail = "no answer within " + std::to_string(limit.count()) + " ms";
  }
  report.lines = SplitLines(text);
  return report;
}

}  // namespace nnfarm
