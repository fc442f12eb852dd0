/* Allocations of a subgraph's computations, once it has been computed a few times.
 *
 *   count_allocations MODEL.json NNAPI_LIBRARY PACKAGE_DIR [NAME VALUE]...   settings of the player
 *
 * Prints how often malloc and its kind were called in kRuns computations, by anybody. */
#include <dlpack/dlpack.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/ffi/c_api.h>

enum { kWarmUp = 8, kRuns = 100, kElements = 32, kTensorSets = 2 };

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

static bool counting;
static int allocations;

/* These stand in for the C library's in the whole process, C++'s new among their callers. */
void* malloc(size_t size) { allocations += counting; return __libc_malloc(size); }
void* calloc(size_t count, size_t size) { allocations += counting; return __libc_calloc(count, size); }
void* realloc(void* block, size_t size) { allocations += counting; return __libc_realloc(block, size); }
void* aligned_alloc(size_t alignment, size_t size) {
  allocations += counting;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** block, size_t alignment, size_t size) {
  allocations += counting;
  *block = __libc_memalign(alignment, size);
  return *block == NULL ? 12 : 0;
}

static void fail(const char* what) {
  fprintf(stderr, "%s failed\n", what);
  exit(1);
}

static TVMFFIAny text(const char* value) {
  TVMFFIAny any = {.type_index = kTVMFFIRawStr, .v_c_str = value};
  return any;
}

static TVMFFIAny call(TVMFFIObjectHandle function, TVMFFIAny* arguments, int count) {
  TVMFFIAny result = {.type_index = kTVMFFINone};
  if (TVMFFIFunctionCall(function, arguments, count, &result) != 0) fail("a call");
  return result;
}

static TVMFFIAny call_global(const char* name, TVMFFIAny* arguments, int count) {
  TVMFFIByteArray bytes = {name, strlen(name)};
  TVMFFIObjectHandle function = NULL;
  if (TVMFFIFunctionGetGlobal(&bytes, &function) != 0 || function == NULL) fail(name);
  return call(function, arguments, count);
}

static char* read_text(const char* path) {
  static char content[1 << 16];
  FILE* file = fopen(path, "rb");
  if (file == NULL) fail(path);
  content[fread(content, 1, sizeof(content) - 1, file)] = '\0';
  fclose(file);
  return content;
}

static TVMFFIObjectHandle load(int argc, char** argv) {
  TVMFFIAny library = text(argv[2]), folder = text(argv[3]);
  call_global("nnfarm.nnapi.set_library", &library, 1);
  call_global("nnfarm.nnapi.set_package_dir", &folder, 1);
  for (int i = 4; i + 1 < argc; i += 2) {
    TVMFFIAny setting[] = {text(argv[i]), text(argv[i + 1])};
    call_global("nnfarm.nnapi.set_option", setting, 2);
  }
  TVMFFIAny document = text(read_text(argv[1]));
  TVMFFIAny imports = {.type_index = kTVMFFIBool, .v_int64 = 1};
  TVMFFIAny wanted[] = {call_global("nnfarm.nnapi.module_create", &document, 1),
                        text("nnfarm_nnapi_0"), imports};
  return call_global("ffi.ModuleGetFunction", wanted, 3).v_obj;
}

int main(int argc, char** argv) {
  static _Alignas(64) float values[kTensorSets][2][kElements];
  int64_t shape[] = {4, 8};
  if (argc < 4) return 2;
  TVMFFIObjectHandle function = load(argc, argv);
  for (int i = 0; i < kWarmUp + kRuns; ++i) {
    /* TVM's machine takes turns with the memory of results, too. */
    float(*pair)[kElements] = values[i % kTensorSets];
    DLTensor tensors[2];
    TVMFFIAny arguments[2];
    for (int k = 0; k < 2; ++k) {
      tensors[k] = (DLTensor){pair[k], {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0};
      arguments[k] = (TVMFFIAny){.type_index = kTVMFFIDLTensorPtr, .v_ptr = &tensors[k]};
    }
    pair[0][5] = (float)i;
    counting = i >= kWarmUp;
    call(function, arguments, 2);
    counting = false;
    if (pair[1][5] != (float)i + 5.0f) fail("the sum");
  }
  printf("%d\n", allocations);
  return 0;
}
