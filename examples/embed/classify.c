/* classify PACKAGE INPUT [OPTION VALUE]...: runs a model of one input on samples that follow each
 * other in a raw file, and prints the class with the largest score of each.
 *
 *   classify digits/ images.f32 preference low-power */
#include <nnfarm_runtime.h>

#include <stdio.h>
#include <stdlib.h>

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, nnfarm_last_error());
  return EXIT_FAILURE;
}

static size_t largest(const float* scores, size_t count) {
  size_t best = 0;
  for (size_t i = 1; i < count; ++i) {
    if (scores[i] > scores[best]) best = i;
  }
  return best;
}

static int classify_all(nnfarm_model* model, FILE* samples) {
  void* image;
  size_t size;
  nnfarm_tensor_info info;
  if (nnfarm_model_map_input(model, 0, NULL, 0, &image, &size) != NNFARM_OK) return fail("input");
  if (nnfarm_model_output_info(model, 0, &info) != NNFARM_OK) return fail("output");
  if (info.type != NNFARM_FLOAT32) {
    fprintf(stderr, "%s is not float32\n", info.name);
    return EXIT_FAILURE;
  }
  /* Straight into the model's memory: nothing is copied. */
  while (fread(image, size, 1, samples) == 1) {
    nnfarm_tensor scores;
    if (nnfarm_model_run(model) != NNFARM_OK) return fail("run");
    if (nnfarm_model_get_output(model, 0, &scores) != NNFARM_OK) return fail("output");
    printf("%zu\n", largest(scores.data, scores.size_bytes / sizeof(float)));
  }
  return EXIT_SUCCESS;
}

static int open_model(int argc, char** argv, nnfarm_model** model) {
  nnfarm_options* options;
  if (nnfarm_options_create(&options) != NNFARM_OK) return fail("options");
  int status = EXIT_SUCCESS;
  for (int i = 3; status == EXIT_SUCCESS && i + 1 < argc; i += 2) {
    if (nnfarm_options_set(options, argv[i], argv[i + 1]) != NNFARM_OK) status = fail(argv[i]);
  }
  if (status == EXIT_SUCCESS && nnfarm_model_open(argv[1], options, model) != NNFARM_OK) {
    status = fail(argv[1]);
  }
  nnfarm_options_free(options);
  return status;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "classify PACKAGE INPUT [OPTION VALUE]...\n");
    return EXIT_FAILURE;
  }
  FILE* samples = fopen(argv[2], "rb");
  if (samples == NULL) {
    perror(argv[2]);
    return EXIT_FAILURE;
  }
  nnfarm_model* model = NULL;
  int status = open_model(argc, argv, &model);
  if (status == EXIT_SUCCESS) status = classify_all(model, samples);
  const char* explanation;
  if (status == EXIT_SUCCESS) {
    if (nnfarm_model_explain(model, &explanation) != NNFARM_OK) status = fail("explain");
    else fprintf(stderr, "%s\n", explanation);
  }
  nnfarm_model_close(model);
  fclose(samples);
  return status;
}
