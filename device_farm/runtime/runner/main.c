/* nnfarm_runner: runs a package on the device it stands on. See docs/reference/runner.md. */
#include "runner/runner_main.h"

int main(int argc, char** argv) { return nnfarm_runner_main(argc, argv); }
