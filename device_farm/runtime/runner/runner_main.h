/* The runner as a function of libnnfarm_runtime.so. Its program is this call only, in C, so that a
 * bundle has what runner and C API share, and the C++ library, once. */
#ifndef NNFARM_RUNNER_RUNNER_MAIN_H_
#define NNFARM_RUNNER_RUNNER_MAIN_H_

#include "api/nnfarm_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `main` of nnfarm_runner, see docs/reference/runner.md. Not for applications: it writes to standard
 * output, forks, and changes signal handlers and the environment. */
NNFARM_API int nnfarm_runner_main(int argc, char** argv);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* NNFARM_RUNNER_RUNNER_MAIN_H_ */
