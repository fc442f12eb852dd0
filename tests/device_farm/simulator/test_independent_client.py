"""The library to a program that has nothing of this repository: names, types and codes only."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.device_farm.simulator.nnapi import Library

# All functions of the platform's header up to feature level 8.
FUNCTIONS = {
    "Burst": "create free",
    "Compilation": "create createForDevices finish free setCaching setPreference setPriority "
    "setTimeout addExtensionAttribute getPreferredMemoryAlignmentForInput "
    "getPreferredMemoryAlignmentForOutput getPreferredMemoryPaddingForInput "
    "getPreferredMemoryPaddingForOutput",
    "Device": "getExtensionSupport getFeatureLevel getName getType getVersion wait",
    "Event": "createFromSyncFenceFd free getSyncFenceFd wait",
    "Execution": "burstCompute compute create enableInputAndOutputPadding free getDuration "
    "getOutputOperandDimensions getOutputOperandRank setInput setInputFromMemory setLoopTimeout "
    "setMeasureTiming setOutput setOutputFromMemory setReusable setTimeout startCompute "
    "startComputeWithDependencies addExtensionAttribute",
    "MemoryDesc": "addInputRole addOutputRole create finish free setDimensions",
    "Memory": "copy createFromAHardwareBuffer createFromDesc createFromFd free",
    "Model": "addOperand addOperation create finish free getExtensionOperandType "
    "getExtensionOperationType getSupportedOperationsForDevices identifyInputsAndOutputs "
    "relaxComputationFloat32toFloat16 setOperandExtensionData "
    "setOperandSymmPerChannelQuantParams setOperandValue setOperandValueFromMemory "
    "setOperandValueFromModel",
    "": "getDefaultLoopTimeout getDevice getDeviceCount getMaximumLoopTimeout "
    "getRuntimeFeatureLevel",
}

# y = x + 1 for two floats.
PROGRAM = r"""
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

typedef struct {
  int32_t type;
  uint32_t rank;
  const uint32_t* dims;
  float scale;
  int32_t zero;
} Type;

static void* library;
static void* find(const char* name) {
  void* function = dlsym(library, name);
  if (!function) fprintf(stderr, "no %s\n", name);
  return function;
}
#define CALL(name, types, ...)                                       \
  do {                                                               \
    int code = ((int (*) types)find("ANeuralNetworks" name))(__VA_ARGS__); \
    if (code) { fprintf(stderr, name ": %d\n", code); return 1; }    \
  } while (0)

int main(int count, char** arguments) {
  if (count != 2 || !(library = dlopen(arguments[1], RTLD_NOW))) return 2;
  const uint32_t dims[1] = {2};
  const Type tensor = {3, 1, dims, 0, 0}, scalar = {1, 0, NULL, 0, 0};
  const float ones[2] = {1, 1}, x[2] = {41, -1};
  const int32_t fused_none = 0;
  const uint32_t inputs[3] = {0, 1, 2}, outputs[1] = {3};
  float y[2] = {0, 0};
  void *model, *compilation, *execution, *event;
  CALL("Model_create", (void**), &model);
  CALL("Model_addOperand", (void*, const Type*), model, &tensor);
  CALL("Model_addOperand", (void*, const Type*), model, &tensor);
  CALL("Model_addOperand", (void*, const Type*), model, &scalar);
  CALL("Model_addOperand", (void*, const Type*), model, &tensor);
  CALL("Model_setOperandValue", (void*, int32_t, const void*, size_t), model, 1, ones, sizeof ones);
  CALL("Model_setOperandValue", (void*, int32_t, const void*, size_t), model, 2, &fused_none, 4);
  CALL("Model_addOperation", (void*, int32_t, uint32_t, const uint32_t*, uint32_t, const uint32_t*),
       model, 0, 3, inputs, 1, outputs);
  CALL("Model_identifyInputsAndOutputs",
       (void*, uint32_t, const uint32_t*, uint32_t, const uint32_t*), model, 1, inputs, 1, outputs);
  CALL("Model_finish", (void*), model);
  CALL("Compilation_create", (void*, void**), model, &compilation);
  CALL("Compilation_finish", (void*), compilation);
  CALL("Execution_create", (void*, void**), compilation, &execution);
  CALL("Execution_setInput", (void*, int32_t, const Type*, const void*, size_t), execution, 0, NULL,
       x, sizeof x);
  CALL("Execution_setOutput", (void*, int32_t, const Type*, void*, size_t), execution, 0, NULL, y,
       sizeof y);
  CALL("Execution_startCompute", (void*, void**), execution, &event);
  CALL("Event_wait", (void*), event);
  ((void (*)(void*))find("ANeuralNetworksEvent_free"))(event);
  ((void (*)(void*))find("ANeuralNetworksExecution_free"))(execution);
  ((void (*)(void*))find("ANeuralNetworksCompilation_free"))(compilation);
  ((void (*)(void*))find("ANeuralNetworksModel_free"))(model);
  printf("%g %g\n", y[0], y[1]);
  return 0;
}
"""


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_every_function_of_level_8_is_exported(library: Library, kind: str) -> None:
    names = [f"ANeuralNetworks{kind}_{name}" for name in FUNCTIONS[kind].split()]
    assert [name for name in names if not hasattr(library.dll, name)] == []


@pytest.mark.gcc
def test_a_program_of_level_1_runs_a_model(simulator: Path, tmp_path: Path) -> None:
    source, program = tmp_path / "client.c", tmp_path / "client"
    source.write_text(PROGRAM)
    subprocess.run(["gcc", "-Wall", "-Werror", "-o", program, source, "-ldl"], check=True)
    result = subprocess.run([program, simulator], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, "42 0\n", "")
