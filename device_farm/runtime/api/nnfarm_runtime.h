/* The C interface of nnfarm's runtime: run a package inside an application.
 *
 *   nnfarm_model* model;
 *   nnfarm_model_open("digits/", NULL, &model);
 *   nnfarm_model_set_input(model, 0, pixels, sizeof(pixels), NULL, 0);
 *   nnfarm_model_run(model);
 *   nnfarm_tensor scores;
 *   nnfarm_model_get_output(model, 0, &scores);
 *   nnfarm_model_close(model);
 *
 * Every function that can fail returns a status; nnfarm_last_error() has the words. Guide:
 * docs/guides/embed-the-runtime.md.
 *
 * Threads: a model or an options object is used by one thread at a time; different ones may be used
 * at the same time, and functions without such an argument by anybody. Opening and closing wait for
 * each other. The parts that run on the CPU have one pool of threads for each thread that calls
 * nnfarm_model_run.
 *
 * Versions: what is here stays, with its meaning and its numbers, as long as NNFARM_API_VERSION's
 * value does; functions, options and members of the JSON texts may be added at any time. */
#ifndef NNFARM_RUNTIME_H_
#define NNFARM_RUNTIME_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NNFARM_API_VERSION 1

#if defined(__GNUC__)
#define NNFARM_API __attribute__((visibility("default")))
#else
#define NNFARM_API
#endif

/* Also the runner's exit codes, where both have one. */
typedef enum nnfarm_status {
  NNFARM_OK = 0,
  NNFARM_BAD_ARGUMENT = 2, /* a null pointer, an index, or an option or value that is none */
  NNFARM_BAD_PACKAGE = 3,  /* missing, damaged, or of a format this version does not read */
  NNFARM_BAD_INPUT = 4,    /* not set, or of another size or shape than the model's */
  NNFARM_FAILED = 5,       /* the computation failed, on the CPU, too */
  NNFARM_NNAPI_FAILED = 6  /* NNAPI failed, and option `mode` is `nnapi` */
} nnfarm_status;

typedef enum nnfarm_type {
  NNFARM_FLOAT32 = 1,
  NNFARM_FLOAT16 = 2,
  NNFARM_FLOAT64 = 3,
  NNFARM_INT8 = 4,
  NNFARM_UINT8 = 5,
  NNFARM_INT16 = 6,
  NNFARM_INT32 = 7,
  NNFARM_INT64 = 8,
  NNFARM_BOOL = 9
} nnfarm_type;

typedef struct nnfarm_options nnfarm_options;
typedef struct nnfarm_model nnfarm_model;

/* An input or an output as the package declares it. Pointers are valid until the model is closed. */
typedef struct nnfarm_tensor_info {
  const char* name;
  nnfarm_type type;
  size_t rank;
  const int64_t* dims; /* -1: known only at run time */
} nnfarm_tensor_info;

/* A computed output, row by row without gaps. Pointers are valid until the next run or close. */
typedef struct nnfarm_tensor {
  const void* data;
  size_t size_bytes;
  size_t rank;
  const int64_t* dims;
} nnfarm_tensor;

/* NNFARM_API_VERSION of the library, which may be newer than the header. */
NNFARM_API int32_t nnfarm_api_version(void);

/* Version of the library, such as "0.1.0". */
NNFARM_API const char* nnfarm_version(void);

/* Why the last call of this thread that failed did so: "code: words". Empty before the first. */
NNFARM_API const char* nnfarm_last_error(void);

/* How models are to be run; null stands for the defaults. May be freed once a model is open. */
NNFARM_API nnfarm_status nnfarm_options_create(nnfarm_options** options);
/* Sets `mode`, `threads`, `cpu-variant`, `nnapi-library` or an NNAPI setting (`device`, `cache-dir`, ...) by the name
 * and value it has in docs/reference/runner.md. `threads` is the process's: it counts for pools that
 * start later, so set it where the first model is opened. Values of NNAPI settings are checked when a model is opened. */
NNFARM_API nnfarm_status nnfarm_options_set(nnfarm_options* options, const char* name,
                                            const char* value);
NNFARM_API void nnfarm_options_free(nnfarm_options* options);

/* Opens a package folder, compiles its NNAPI subgraphs, and moves to its CPU twin where NNAPI cannot
 * do it. `*model` is null unless the status is NNFARM_OK. The folder must stay while it is open.
 *
 * A driver that crashes takes the process with it: unlike the runner, this library never forks. */
NNFARM_API nnfarm_status nnfarm_model_open(const char* folder, const nnfarm_options* options,
                                           nnfarm_model** model);
NNFARM_API void nnfarm_model_close(nnfarm_model* model);

/* Numbers of inputs and outputs; 0 for null. */
NNFARM_API size_t nnfarm_model_input_count(const nnfarm_model* model);
NNFARM_API size_t nnfarm_model_output_count(const nnfarm_model* model);
NNFARM_API nnfarm_status nnfarm_model_input_info(const nnfarm_model* model, size_t index,
                                                 nnfarm_tensor_info* info);
NNFARM_API nnfarm_status nnfarm_model_output_info(const nnfarm_model* model, size_t index,
                                                  nnfarm_tensor_info* info);

/* Copies an input. `dims` gives the shape where the package leaves some of it open; null, with rank
 * 0: the declared one. Inputs keep their content from run to run. */
NNFARM_API nnfarm_status nnfarm_model_set_input(nnfarm_model* model, size_t index, const void* data,
                                                size_t size_bytes, const int64_t* dims,
                                                size_t rank);
/* The memory of an input, to write into instead of copying. Undefined content at first; valid as
 * long as the input's shape stays. */
NNFARM_API nnfarm_status nnfarm_model_map_input(nnfarm_model* model, size_t index,
                                                const int64_t* dims, size_t rank, void** data,
                                                size_t* size_bytes);

/* One inference. Where NNAPI fails, the CPU twin computes this one and all that follow. */
NNFARM_API nnfarm_status nnfarm_model_run(nnfarm_model* model);

/* An output of the last run; NNFARM_BAD_ARGUMENT before the first one that got through. */
NNFARM_API nnfarm_status nnfarm_model_get_output(const nnfarm_model* model, size_t index,
                                                 nnfarm_tensor* tensor);

/* What computes and why, as JSON (docs/reference/runtime-api.md). Valid until the next explain or
 * close. */
NNFARM_API nnfarm_status nnfarm_model_explain(nnfarm_model* model, const char** json);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* NNFARM_RUNTIME_H_ */
