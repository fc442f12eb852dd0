// A very small NNAPI library that fails on demand. It knows float ADD on tensors of equal size.
//
// Environment (read at each call, so a fault may begin in the middle of a run):
//   FAULT_FAIL=<function>=<result>   that function returns the result
//   FAULT_CRASH, FAULT_HANG, FAULT_EXIT=<function>
//   FAULT_SKIP=<function>            that function says it did, and does nothing
//   FAULT_AFTER=<n>                  the fault begins after n good calls of that function
//   FAULT_LEVEL=<code>               what getRuntimeFeatureLevel says (default 31)
//   FAULT_DEVICES=<n>                how many devices there are said to be
//   FAULT_FILE_MEMORY                compiling a model with constants in a file's memory fails
//   FAULT_LOG=<file>                 every call's name, a line each; settings with their value
// Compile with -DSYMBOLS=<level> to leave out the entry points of later levels.
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef SYMBOLS
#define SYMBOLS 5
#endif
#define MOST 64

typedef struct { int32_t type; uint32_t rank; const uint32_t* dims; float scale; int32_t zero; } Type;
typedef struct { const char* data; size_t size; } Memory;
typedef struct { size_t count; const void* value; char copy[128]; int32_t type; } Operand;
typedef struct { int32_t code; uint32_t in[MOST], out[MOST]; } Operation;
typedef struct {
  Operand operands[MOST]; uint32_t operand_count;
  Operation operations[MOST]; uint32_t operation_count;
  uint32_t in[MOST], out[MOST];
  bool has_file_memory;
} Model;
typedef struct { Model* model; } Compilation;
typedef struct { Model* model; const void* in[MOST]; void* out[MOST]; bool reusable, done; } Execution;
typedef struct { int unused; } Thing;

static int calls_left(const char* name) {
  static int good_calls;
  const char* after = getenv("FAULT_AFTER");
  (void)name;
  return after != NULL && good_calls++ < atoi(after);
}

static bool is_named(const char* variable, const char* name) {
  const char* value = getenv(variable);
  size_t length = strlen(name);
  return value != NULL && strncmp(value, name, length) == 0 &&
         (value[length] == '\0' || value[length] == '=');
}

static int fault(const char* name) {
  const char* log = getenv("FAULT_LOG");
  if (log != NULL) {
    FILE* file = fopen(log, "a");
    fprintf(file, "%s\n", name);
    fclose(file);
  }
  bool crash = is_named("FAULT_CRASH", name), hang = is_named("FAULT_HANG", name);
  bool leave = is_named("FAULT_EXIT", name), fail = is_named("FAULT_FAIL", name);
  if (!(crash || hang || leave || fail) || calls_left(name)) return 0;
  if (crash) raise(SIGSEGV);
  if (leave) exit(1);
  while (hang) pause();
  return atoi(strchr(getenv("FAULT_FAIL"), '=') + 1);
}

// What a setting was given, e.g. `priority=90`.
static void note(const char* name, int64_t value) {
  const char* log = getenv("FAULT_LOG");
  if (log == NULL) return;
  FILE* file = fopen(log, "a");
  fprintf(file, "%s=%" PRId64 "\n", name, value);
  fclose(file);
}

#define FAULT() do { \
  int result = fault(__func__); \
  if (result != 0 || is_named("FAULT_SKIP", __func__)) return result; \
} while (0)

int ANeuralNetworksMemory_createFromFd(size_t size, int protection, int fd, size_t offset, Memory** out) {
  FAULT();
  Memory* memory = malloc(sizeof(Memory));
  memory->size = size;
  memory->data = mmap(NULL, size, protection, MAP_SHARED, fd, (off_t)offset);
  if (memory->data == MAP_FAILED) { free(memory); return 7; }
  *out = memory;
  return 0;
}
void ANeuralNetworksMemory_free(Memory* memory) {
  fault(__func__);
  munmap((void*)memory->data, memory->size);
  free(memory);
}
int ANeuralNetworksModel_create(Model** out) { FAULT(); *out = calloc(1, sizeof(Model)); return 0; }
void ANeuralNetworksModel_free(Model* model) { fault(__func__); free(model); }
int ANeuralNetworksModel_finish(Model* model) { FAULT(); (void)model; return 0; }
int ANeuralNetworksModel_addOperand(Model* model, const Type* type) {
  FAULT();
  if (model->operand_count == MOST) return 4;
  Operand* operand = &model->operands[model->operand_count++];
  operand->type = type->type;
  operand->count = 1;
  for (uint32_t i = 0; i < type->rank; ++i) operand->count *= type->dims[i];
  return 0;
}
int ANeuralNetworksModel_setOperandValue(Model* model, int32_t index, const void* data, size_t size) {
  FAULT();
  Operand* operand = &model->operands[index];
  if (size <= 128 && data != NULL) { memcpy(operand->copy, data, size); data = operand->copy; }
  operand->value = data;
  return 0;
}
int ANeuralNetworksModel_setOperandValueFromMemory(Model* model, int32_t index, const Memory* memory,
                                                   size_t offset, size_t size) {
  FAULT();
  if (offset + size > memory->size) return 4;
  model->operands[index].value = memory->data + offset;
  model->has_file_memory = true;
  return 0;
}
int ANeuralNetworksModel_addOperation(Model* model, int32_t code, uint32_t in_count, const uint32_t* in,
                                      uint32_t out_count, const uint32_t* out) {
  FAULT();
  Operation* operation = &model->operations[model->operation_count++];
  operation->code = code;
  memcpy(operation->in, in, in_count * sizeof(*in));
  memcpy(operation->out, out, out_count * sizeof(*out));
  return 0;
}
int ANeuralNetworksModel_identifyInputsAndOutputs(Model* model, uint32_t in_count, const uint32_t* in,
                                                  uint32_t out_count, const uint32_t* out) {
  FAULT();
  memcpy(model->in, in, in_count * sizeof(*in));
  memcpy(model->out, out, out_count * sizeof(*out));
  for (uint32_t i = 0; i < MOST; ++i) {
    if (i >= in_count) model->in[i] = UINT32_MAX;
    if (i >= out_count) model->out[i] = UINT32_MAX;
  }
  return 0;
}
int ANeuralNetworksCompilation_create(Model* model, Compilation** out) {
  FAULT();
  *out = malloc(sizeof(Compilation));
  (*out)->model = model;
  return 0;
}
void ANeuralNetworksCompilation_free(Compilation* compilation) { fault(__func__); free(compilation); }
int ANeuralNetworksCompilation_setPreference(Compilation* compilation, int32_t preference) {
  FAULT();
  (void)compilation;
  note("preference", preference);
  return preference >= 0 && preference <= 2 ? 0 : 4;
}
int ANeuralNetworksCompilation_finish(Compilation* compilation) {
  FAULT();
  // What a driver's service that may not read the file says.
  return compilation->model->has_file_memory && getenv("FAULT_FILE_MEMORY") != NULL ? 5 : 0;
}
int ANeuralNetworksExecution_create(Compilation* compilation, Execution** out) {
  FAULT();
  *out = calloc(1, sizeof(Execution));
  (*out)->model = compilation->model;
  return 0;
}
void ANeuralNetworksExecution_free(Execution* execution) { fault(__func__); free(execution); }
int ANeuralNetworksExecution_setInput(Execution* execution, int32_t index, const Type* type,
                                      const void* data, size_t size) {
  FAULT();
  const Operand* operand = &execution->model->operands[execution->model->in[index]];
  if (execution->done) return 6;
  if (type == NULL && size != operand->count * 4) return 4;
  execution->in[index] = data;
  return 0;
}
int ANeuralNetworksExecution_setOutput(Execution* execution, int32_t index, const Type* type, void* data,
                                       size_t size) {
  FAULT();
  (void)type;
  const Operand* operand = &execution->model->operands[execution->model->out[index]];
  if (execution->done) return 6;
  if (size != operand->count * 4) return 4;
  execution->out[index] = data;
  return 0;
}
int ANeuralNetworksExecution_setInputFromMemory(Execution* execution, int32_t index, const Type* type,
                                                const Memory* memory, size_t offset, size_t size) {
  FAULT();
  (void)type;
  if (execution->done) return 6;
  if (offset + size > memory->size) return 4;
  execution->in[index] = memory->data + offset;
  return 0;
}
int ANeuralNetworksExecution_setOutputFromMemory(Execution* execution, int32_t index, const Type* type,
                                                 const Memory* memory, size_t offset, size_t size) {
  FAULT();
  (void)type;
  if (execution->done) return 6;
  if (offset + size > memory->size) return 4;
  execution->out[index] = (void*)(memory->data + offset);
  return 0;
}

static bool add_all(const Model* model, float** values, bool* is_temporary) {
  for (uint32_t i = 0; i < model->operation_count; ++i) {
    const Operation* operation = &model->operations[i];
    const size_t count = model->operands[operation->out[0]].count;
    if (operation->code != 0) return false;
    if (values[operation->out[0]] == NULL) {
      values[operation->out[0]] = malloc(count * sizeof(float));
      is_temporary[operation->out[0]] = true;
    }
    const float *a = values[operation->in[0]], *b = values[operation->in[1]];
    for (size_t k = 0; k < count; ++k) values[operation->out[0]][k] = a[k] + b[k];
  }
  return true;
}

static int run(Execution* execution) {
  Model* model = execution->model;
  float* values[MOST] = {0};
  bool is_temporary[MOST] = {false};
  if (execution->done && !execution->reusable) return 6;
  execution->done = true;
  for (uint32_t i = 0; i < model->operand_count; ++i) values[i] = (float*)model->operands[i].value;
  for (int i = 0; model->in[i] != UINT32_MAX; ++i) values[model->in[i]] = (float*)execution->in[i];
  for (int i = 0; model->out[i] != UINT32_MAX; ++i) values[model->out[i]] = execution->out[i];
  bool good = add_all(model, values, is_temporary);
  for (int i = 0; i < MOST; ++i) {
    if (is_temporary[i]) free(values[i]);
  }
  return good ? 0 : 5;
}
int ANeuralNetworksExecution_startCompute(Execution* execution, Thing** event) {
  FAULT();
  int result = run(execution);
  if (result == 0) *event = malloc(sizeof(Thing));
  return result;
}
int ANeuralNetworksEvent_wait(Thing* event) { FAULT(); (void)event; return 0; }
void ANeuralNetworksEvent_free(Thing* event) { fault(__func__); free(event); }

#if SYMBOLS >= 2
int ANeuralNetworksModel_relaxComputationFloat32toFloat16(Model* model, bool allow) {
  FAULT();
  (void)model;
  note("relaxed", allow);
  return 0;
}
#endif
#if SYMBOLS >= 3
static Thing devices[2];  // fault-npu, nnapi-reference
static bool is_reference(const Thing* device) { return device == &devices[1]; }

int ANeuralNetworks_getDeviceCount(uint32_t* count) {
  FAULT();
  const char* devices_given = getenv("FAULT_DEVICES");
  *count = devices_given != NULL ? (uint32_t)strtoul(devices_given, NULL, 10) : 2;
  return 0;
}
int ANeuralNetworks_getDevice(uint32_t index, Thing** device) { FAULT(); *device = &devices[index]; return 0; }
int ANeuralNetworksDevice_getName(const Thing* device, const char** name) {
  FAULT();
  *name = is_reference(device) ? "nnapi-reference" : "fault-npu";
  return 0;
}
int ANeuralNetworksDevice_getType(const Thing* device, int32_t* type) {
  FAULT();
  *type = is_reference(device) ? 2 : 4;
  return 0;
}
int ANeuralNetworksDevice_getVersion(const Thing* device, const char** version) {
  FAULT();
  (void)device;
  *version = "9.9";
  return 0;
}
int ANeuralNetworksDevice_getFeatureLevel(const Thing* device, int64_t* level) {
  FAULT();
  *level = is_reference(device) ? 31 : 30;
  return 0;
}
int ANeuralNetworksDevice_getExtensionSupport(const Thing* device, const char* name, bool* supported) {
  FAULT();
  *supported = !is_reference(device) && strcmp(name, "com.example.fault") == 0;
  return 0;
}
int ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(Model* model, int32_t index, const void* parameters) {
  FAULT();
  (void)model; (void)index; (void)parameters;
  return 0;
}
int ANeuralNetworksModel_getExtensionOperandType(Model* model, const char* name, uint16_t type, int32_t* code) {
  FAULT();
  (void)model; (void)name;
  *code = 7 << 16 | type;
  return 0;
}
int ANeuralNetworksModel_getExtensionOperationType(Model* model, const char* name, uint16_t type, int32_t* code) {
  FAULT();
  (void)model; (void)name;
  *code = type;  // the extension's operation 0 is ADD as well
  return 0;
}
int ANeuralNetworksModel_setOperandExtensionData(Model* model, int32_t index, const void* data, size_t size) {
  FAULT();
  (void)model; (void)data;
  note("extension_data_of", index);
  note("extension_data_size", (int64_t)size);
  return 0;
}
int ANeuralNetworksCompilation_setCaching(Compilation* compilation, const char* folder, const uint8_t* token) {
  FAULT();
  (void)compilation;
  const char* log = getenv("FAULT_LOG");
  if (log == NULL) return 0;
  FILE* file = fopen(log, "a");
  fprintf(file, "cache=%s token=", folder);
  for (int i = 0; i < 32; ++i) fprintf(file, "%02x", token[i]);
  fprintf(file, "\n");
  fclose(file);
  return 0;
}
int ANeuralNetworksModel_getSupportedOperationsForDevices(const Model* model, const Thing* const* chosen,
                                                          uint32_t count, bool* supported) {
  FAULT();
  (void)chosen; (void)count;
  for (uint32_t i = 0; i < model->operation_count; ++i) supported[i] = model->operations[i].code == 0;
  return 0;
}
int ANeuralNetworksCompilation_createForDevices(Model* model, const Thing* const* chosen, uint32_t count,
                                                Compilation** out) {
  FAULT();
  (void)chosen; (void)count;
  *out = malloc(sizeof(Compilation));
  (*out)->model = model;
  return 0;
}
int ANeuralNetworksExecution_compute(Execution* execution) { FAULT(); return run(execution); }
int ANeuralNetworksBurst_create(Compilation* compilation, Thing** burst) {
  FAULT();
  (void)compilation;
  *burst = malloc(sizeof(Thing));
  return 0;
}
void ANeuralNetworksBurst_free(Thing* burst) { fault(__func__); free(burst); }
int ANeuralNetworksExecution_burstCompute(Execution* execution, Thing* burst) {
  FAULT();
  (void)burst;
  return run(execution);
}
#endif
#if SYMBOLS >= 4
int ANeuralNetworksExecution_setTimeout(Execution* execution, uint64_t nanoseconds) {
  FAULT();
  (void)execution;
  note("execute_timeout", (int64_t)nanoseconds);
  return 0;
}
int ANeuralNetworksCompilation_setTimeout(Compilation* compilation, uint64_t nanoseconds) {
  FAULT();
  (void)compilation;
  note("compile_timeout", (int64_t)nanoseconds);
  return 0;
}
int ANeuralNetworksCompilation_setPriority(Compilation* compilation, int priority) {
  FAULT();
  (void)compilation;
  note("priority", priority);
  return 0;
}
#endif
#if SYMBOLS >= 5
int ANeuralNetworksExecution_setReusable(Execution* execution, bool reusable) {
  FAULT();
  execution->reusable = reusable;
  return 0;
}
int64_t ANeuralNetworks_getRuntimeFeatureLevel(void) {
  const char* level = getenv("FAULT_LEVEL");
  return level != NULL ? atoll(level) : 31;
}
#endif
