# libtvm_ffi.so and libtvm_runtime.so out of the sources inside the wheels: the C ABI, the Relax
# virtual machine and the CPU device, nothing else.
foreach(folder "${NNFARM_TVM_FFI_DIR}/src/ffi" "${NNFARM_TVM_DIR}/src/runtime")
  if(NOT IS_DIRECTORY "${folder}")
    message(FATAL_ERROR "TVM's sources are not there: ${folder}")
  endif()
endforeach()

file(GLOB ffi_sources ${NNFARM_TVM_FFI_DIR}/src/ffi/*.cc ${NNFARM_TVM_FFI_DIR}/src/ffi/extra/*.cc)
list(FILTER ffi_sources EXCLUDE REGEX "/backtrace_win\\.cc$")
# What only scripting languages and the compiler call, half of the library: comparing, hashing,
# copying and writing of object graphs, and containers and classes by name. JSON is only read here.
list(FILTER ffi_sources EXCLUDE REGEX
  "/(container|dataclass|json_writer|reflection_extra|serialization|structural_[a-z]+|visit_error_context)\\.cc$")

set(runtime ${NNFARM_TVM_DIR}/src/runtime)
file(GLOB runtime_sources ${runtime}/*.cc ${runtime}/memory/*.cc)
# Half-precision helpers of generated code and linking of static libraries: compiler's business.
# timer: TVM's profiling. file_utils: see compat/file_access.cc.
list(FILTER runtime_sources EXCLUDE REGEX "/(builtin_fp16|file_utils|static_library|timer)\\.cc$")
list(APPEND runtime_sources compat/file_access.cc)
foreach(name builtin bytecode executable vm)
  list(APPEND runtime_sources ${runtime}/vm/${name}.cc)
endforeach()

optimise_for_speed(${NNFARM_TVM_FFI_DIR}/src/ffi/function.cc ${runtime}/thread_pool.cc
  ${runtime}/workspace_pool.cc ${runtime}/vm/builtin.cc ${runtime}/vm/vm.cc)

# The sources include "../support/x.h" and "../../support/x.h"; these folders stand where that leads
# to our headers.
set(compat ${CMAKE_BINARY_DIR}/compat)
file(MAKE_DIRECTORY ${compat}/runtime/vm)
file(GLOB compat_headers ${CMAKE_SOURCE_DIR}/compat/support/*.h)
file(COPY ${compat_headers} DESTINATION ${compat}/support)

add_library(tvm_ffi SHARED ${ffi_sources})
add_library(tvm_runtime SHARED ${runtime_sources})
foreach(library tvm_ffi tvm_runtime)
  target_include_directories(${library} SYSTEM PRIVATE
    ${CMAKE_SOURCE_DIR}/compat/include ${compat}/runtime ${compat}/runtime/vm
    ${NNFARM_TVM_FFI_DIR}/include ${NNFARM_TVM_FFI_DIR}/3rdparty/dlpack/include
    ${NNFARM_TVM_DIR}/include)
  # No backtraces on phones: they need libbacktrace, and a crash must stay a plain signal.
  target_compile_definitions(${library} PRIVATE
    TVM_FFI_EXPORTS TVM_RUNTIME_EXPORTS TVM_FFI_USE_LIBBACKTRACE=0 TVM_FFI_BACKTRACE_ON_SEGFAULT=0)
  # Not our code, so not our warnings.
  target_compile_options(${library} PRIVATE -w ${prefix_maps} -fvisibility=hidden
    -fvisibility-inlines-hidden)
endforeach()
target_link_libraries(tvm_ffi PRIVATE ${CMAKE_DL_LIBS})
target_link_libraries(tvm_runtime PRIVATE tvm_ffi ${CMAKE_DL_LIBS})
# Android has threads in its C library, and no libpthread to look for.
if(NOT ANDROID)
  find_package(Threads REQUIRED)
  target_link_libraries(tvm_runtime PRIVATE Threads::Threads)
endif()
