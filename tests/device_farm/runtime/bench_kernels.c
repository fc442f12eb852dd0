// A library of one kernel, y = 2 x over floats, in schedules that are good, bad and worse.
#include <stdlib.h>
#include <tvm/ffi/c_api.h>

static float* FloatsOf(const TVMFFIAny* argument, int64_t* count) {
  const char* object = (const char*)argument->v_ptr;
  const DLTensor* tensor = (const DLTensor*)(argument->type_index == kTVMFFITensor
                                                 ? object + sizeof(TVMFFIObject)
                                                 : object);
  *count = 1;
  for (int i = 0; i < tensor->ndim; ++i) *count *= tensor->shape[i];
  return (float*)((char*)tensor->data + tensor->byte_offset);
}

static void Double(const TVMFFIAny* arguments, int repeats, float factor) {
  int64_t count;
  const volatile float* x = FloatsOf(&arguments[0], &count);
  volatile float* y = FloatsOf(&arguments[1], &count);
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (int64_t i = 0; i < count; ++i) y[i] = factor * x[i];
  }
}

#define KERNEL(name, statement)                                                            \
  __attribute__((visibility("default"))) int __tvm_ffi_##name(                             \
      void* self, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result) {          \
    (void)self, (void)count, (void)result;                                                 \
    statement;                                                                             \
    return 0;                                                                              \
  }

KERNEL(ruled, Double(arguments, RULED_REPEATS, 2.0f))
KERNEL(candidate_0, Double(arguments, 8, 2.0f))      // clearly slower
KERNEL(candidate_1, Double(arguments, 1, 2.5f))      // something else, faster
KERNEL(candidate_2, abort())                         // crashes
KERNEL(candidate_3, Double(arguments, 0, 2.0f))      // nothing: what was there must not count
KERNEL(candidate_4, Double(arguments, 2, 2.0001f))   // the same but for rounding, twice as fast
KERNEL(candidate_6, Double(arguments, 1, 2.0f))      // faster still; there is no candidate_5
