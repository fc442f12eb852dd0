// One line on standard error; standard output belongs to the runner's events.
#ifndef NNFARM_BASE_LOG_H_
#define NNFARM_BASE_LOG_H_

#include <cstdio>
#include <string>

namespace nnfarm {

inline void LogLine(const std::string& text) { std::fprintf(stderr, "nnfarm: %s\n", text.c_str()); }

}  // namespace nnfarm

#endif  // NNFARM_BASE_LOG_H_
