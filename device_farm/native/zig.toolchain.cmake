# Cross-compiles with Zig (PyPI: ziglang) for NNFARM_ZIG_TRIPLE. NNFARM_ZIG is its executable; without
# it the one in PATH, or the one of the Python package.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES NNFARM_ZIG NNFARM_ZIG_TRIPLE)
find_program(NNFARM_ZIG NAMES zig python-zig NO_CMAKE_FIND_ROOT_PATH)
if(NOT NNFARM_ZIG)
  message(FATAL_ERROR "Zig is missing: pip install ziglang, or set NNFARM_ZIG")
endif()

set(CMAKE_SYSTEM_NAME Linux)
string(REGEX REPLACE "-.*" "" CMAKE_SYSTEM_PROCESSOR "${NNFARM_ZIG_TRIPLE}")
set(CMAKE_C_COMPILER ${NNFARM_ZIG} cc)
set(CMAKE_CXX_COMPILER ${NNFARM_ZIG} c++)
set(CMAKE_C_COMPILER_TARGET ${NNFARM_ZIG_TRIPLE})
set(CMAKE_CXX_COMPILER_TARGET ${NNFARM_ZIG_TRIPLE})
# Zig's ar is a subcommand, which CMAKE_AR cannot hold.
foreach(language C CXX)
  set(CMAKE_${language}_ARCHIVE_CREATE "${NNFARM_ZIG} ar qc <TARGET> <OBJECTS>")
  set(CMAKE_${language}_ARCHIVE_APPEND "${NNFARM_ZIG} ar q <TARGET> <OBJECTS>")
  set(CMAKE_${language}_ARCHIVE_FINISH "${NNFARM_ZIG} ranlib <TARGET>")
endforeach()
# Zig's linker driver writes no dependency file.
set(CMAKE_LINK_DEPENDS_USE_LINKER FALSE)
# Zig checks for undefined behaviour unless it is told not to.
set(CMAKE_C_FLAGS_INIT "-fno-sanitize=undefined")
set(CMAKE_CXX_FLAGS_INIT "-fno-sanitize=undefined")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
