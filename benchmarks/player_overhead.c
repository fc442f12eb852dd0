// One inference by nnfarm's runtime, and by NNAPI calls written by hand, in turns.
//
//   player_overhead PACKAGE RUNTIME NNAPI ELEMENTS BLOCKS RUNS
//
// PACKAGE is an artifact of y = x + c with float tensors of [1, ELEMENTS] as its one subgraph, RUNTIME
// libnnfarm_runtime.so, NNAPI a libneuralnetworks.so of feature level 5 or later. Prints the mean
// nanoseconds of a run, one line a block of RUNS runs: "<by hand> <nnfarm>".
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "nnapi.h"
#include "nnfarm_runtime.h"

static void require(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static void* open_library(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  require(library != NULL, dlerror());
  return library;
}

// A function of a library under its own name.
#define LOOK_UP(library, name)                               \
  __typeof__(&name) call_##name = (__typeof__(&name))dlsym(library, #name); \
  require(call_##name != NULL, #name " is missing")

#define NNAPI(name, ...) require(call_##name(__VA_ARGS__) == ANEURALNETWORKS_NO_ERROR, #name)

static int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int main(int count, char** arguments) {
  require(count == 7, "usage: player_overhead PACKAGE RUNTIME NNAPI ELEMENTS BLOCKS RUNS");
  const uint32_t elements = (uint32_t)atoi(arguments[4]);
  const int blocks = atoi(arguments[5]), runs = atoi(arguments[6]);
  const size_t size = elements * sizeof(float);
  float *x = malloc(size), *c = malloc(size), *y = malloc(size);
  for (uint32_t i = 0; i < elements; ++i) {
    x[i] = (float)i;
    c[i] = (float)(elements - i);
  }

  void* nnapi = open_library(arguments[3]);
  LOOK_UP(nnapi, ANeuralNetworks_getDevice);
  LOOK_UP(nnapi, ANeuralNetworksModel_create);
  LOOK_UP(nnapi, ANeuralNetworksModel_addOperand);
  LOOK_UP(nnapi, ANeuralNetworksModel_setOperandValue);
  LOOK_UP(nnapi, ANeuralNetworksModel_addOperation);
  LOOK_UP(nnapi, ANeuralNetworksModel_identifyInputsAndOutputs);
  LOOK_UP(nnapi, ANeuralNetworksModel_finish);
  LOOK_UP(nnapi, ANeuralNetworksCompilation_createForDevices);
  LOOK_UP(nnapi, ANeuralNetworksCompilation_finish);
  LOOK_UP(nnapi, ANeuralNetworksBurst_create);
  LOOK_UP(nnapi, ANeuralNetworksExecution_create);
  LOOK_UP(nnapi, ANeuralNetworksExecution_setReusable);
  LOOK_UP(nnapi, ANeuralNetworksExecution_setInput);
  LOOK_UP(nnapi, ANeuralNetworksExecution_setOutput);
  LOOK_UP(nnapi, ANeuralNetworksExecution_burstCompute);

  ANeuralNetworksModel* model;
  NNAPI(ANeuralNetworksModel_create, &model);
  const uint32_t dims[] = {1, elements};
  const ANeuralNetworksOperandType tensor = {ANEURALNETWORKS_TENSOR_FLOAT32, 2, dims, 0, 0};
  const ANeuralNetworksOperandType scalar = {ANEURALNETWORKS_INT32, 0, NULL, 0, 0};
  NNAPI(ANeuralNetworksModel_addOperand, model, &tensor);
  NNAPI(ANeuralNetworksModel_addOperand, model, &tensor);
  NNAPI(ANeuralNetworksModel_addOperand, model, &scalar);
  NNAPI(ANeuralNetworksModel_addOperand, model, &tensor);
  const int32_t no_activation = ANEURALNETWORKS_FUSED_NONE;
  NNAPI(ANeuralNetworksModel_setOperandValue, model, 1, c, size);
  NNAPI(ANeuralNetworksModel_setOperandValue, model, 2, &no_activation, sizeof no_activation);
  const uint32_t inputs[] = {0, 1, 2}, output = 3;
  NNAPI(ANeuralNetworksModel_addOperation, model, 0 /* ADD */, 3, inputs, 1, &output);
  NNAPI(ANeuralNetworksModel_identifyInputsAndOutputs, model, 1, inputs, 1, &output);
  NNAPI(ANeuralNetworksModel_finish, model);
  ANeuralNetworksDevice* device;
  NNAPI(ANeuralNetworks_getDevice, 0, &device);
  ANeuralNetworksCompilation* compilation;
  const ANeuralNetworksDevice* devices[] = {device};
  NNAPI(ANeuralNetworksCompilation_createForDevices, model, devices, 1, &compilation);
  NNAPI(ANeuralNetworksCompilation_finish, compilation);
  ANeuralNetworksBurst* burst;
  NNAPI(ANeuralNetworksBurst_create, compilation, &burst);
  ANeuralNetworksExecution* execution;
  NNAPI(ANeuralNetworksExecution_create, compilation, &execution);
  NNAPI(ANeuralNetworksExecution_setReusable, execution, true);
  NNAPI(ANeuralNetworksExecution_setInput, execution, 0, NULL, x, size);
  NNAPI(ANeuralNetworksExecution_setOutput, execution, 0, NULL, y, size);

  void* runtime = open_library(arguments[2]);
  LOOK_UP(runtime, nnfarm_last_error);
  LOOK_UP(runtime, nnfarm_options_create);
  LOOK_UP(runtime, nnfarm_options_set);
  LOOK_UP(runtime, nnfarm_model_open);
  LOOK_UP(runtime, nnfarm_model_set_input);
  LOOK_UP(runtime, nnfarm_model_run);
  LOOK_UP(runtime, nnfarm_model_get_output);
#define NNFARM(name, ...) require(call_##name(__VA_ARGS__) == NNFARM_OK, call_nnfarm_last_error())
  nnfarm_options* options;
  NNFARM(nnfarm_options_create, &options);
  NNFARM(nnfarm_options_set, options, "mode", "nnapi");
  NNFARM(nnfarm_options_set, options, "nnapi-library", arguments[3]);
  nnfarm_model* package;
  NNFARM(nnfarm_model_open, arguments[1], options, &package);
  NNFARM(nnfarm_model_set_input, package, 0, x, size, NULL, 0);

  for (int block = -1; block < blocks; ++block) {  // the first one warms up
    const int64_t start = now_ns();
    for (int i = 0; i < runs; ++i) {
      NNAPI(ANeuralNetworksExecution_burstCompute, execution, burst);
    }
    const int64_t middle = now_ns();
    for (int i = 0; i < runs; ++i) NNFARM(nnfarm_model_run, package);
    const int64_t end = now_ns();
    if (block >= 0) {
      printf("%.1f %.1f\n", (double)(middle - start) / runs, (double)(end - middle) / runs);
    }
  }
  nnfarm_tensor answer;
  NNFARM(nnfarm_model_get_output, package, 0, &answer);
  for (uint32_t i = 0; i < elements; ++i) {
    require(y[i] == (float)elements && ((const float*)answer.data)[i] == y[i], "a wrong answer");
  }
  return 0;
}
