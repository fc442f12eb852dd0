/* Several models at once: each thread opens the package its own way, runs it, checks, closes it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "nnfarm_runtime.h"

enum { kOpenings = 3, kRuns = 40, kElements = 32 };

static const char* const kWays[][2] = {
    {"compute", "burst"}, {"compute", "sync"},       {"compute", "async"}, {"buffers", "memory"},
    {"mode", "cpu"},      {"priority", "low"},       {"mode", "nnapi"},    {"relaxed", "false"},
};
enum { kWayCount = sizeof(kWays) / sizeof(kWays[0]) };

static const char* folder;
static const char* nnapi_library;

static void check(nnfarm_status status, const char* what) {
  if (status == NNFARM_OK) return;
  fprintf(stderr, "%s: %s\n", what, nnfarm_last_error());
  exit(1);
}

static nnfarm_model* open_model(size_t way) {
  nnfarm_options* options;
  nnfarm_model* model;
  check(nnfarm_options_create(&options), "options");
  check(nnfarm_options_set(options, "nnapi-library", nnapi_library), "nnapi-library");
  check(nnfarm_options_set(options, kWays[way][0], kWays[way][1]), kWays[way][0]);
  check(nnfarm_model_open(folder, options, &model), "open");
  nnfarm_options_free(options);
  return model;
}

/* The package adds i + 0.5 to element i. */
static void run_model(nnfarm_model* model, float base) {
  void* input;
  size_t size;
  nnfarm_tensor sum;
  check(nnfarm_model_map_input(model, 0, NULL, 0, &input, &size), "input");
  for (int i = 0; i < kElements; ++i) ((float*)input)[i] = base;
  check(nnfarm_model_run(model), "run");
  check(nnfarm_model_get_output(model, 0, &sum), "output");
  for (int i = 0; i < kElements; ++i) {
    if (((const float*)sum.data)[i] == base + (float)i + 0.5f) continue;
    fprintf(stderr, "element %d is %f\n", i, (double)((const float*)sum.data)[i]);
    exit(1);
  }
}

static void* work(void* argument) {
  const size_t way = (size_t)argument;
  for (int opening = 0; opening < kOpenings; ++opening) {
    nnfarm_model* model = open_model(way);
    const char* explanation;
    check(nnfarm_model_explain(model, &explanation), "explain");
    for (int run = 0; run < kRuns; ++run) run_model(model, (float)(run + (int)way));
    nnfarm_model_close(model);
  }
  return NULL;
}

int main(int argc, char** argv) {
  pthread_t threads[kWayCount];
  if (argc != 3) return 2;
  folder = argv[1];
  nnapi_library = argv[2];
  for (size_t i = 0; i < kWayCount; ++i) {
    if (pthread_create(&threads[i], NULL, work, (void*)i) != 0) return 1;
  }
  for (size_t i = 0; i < kWayCount; ++i) pthread_join(threads[i], NULL);
  puts("done");
  return 0;
}
