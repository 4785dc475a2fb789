# Every choice a builder has, all named BRISK_*; what only Brisk's own developers want is off inside another project.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  message(FATAL_ERROR "Brisk's CPU kernels need an x86-64 processor; this target is ${CMAKE_SYSTEM_PROCESSOR}.")
endif()

option(BRISK_TESTS "Build the tests (needs GoogleTest)" ${PROJECT_IS_TOP_LEVEL})
option(BRISK_EXAMPLES "Build the example programs" ${PROJECT_IS_TOP_LEVEL})
option(BRISK_BENCHMARKS "Build the benchmarks (needs Google Benchmark)" ${PROJECT_IS_TOP_LEVEL})
option(BRISK_CLI "Build the brisk program (needs CLI11)" ${PROJECT_IS_TOP_LEVEL})
option(BRISK_INSTALL "Install headers, library and CMake package" ${PROJECT_IS_TOP_LEVEL})
option(BRISK_WERROR "Treat warnings in Brisk's own sources as errors" OFF)
set(BRISK_ONEDNN AUTO CACHE STRING "oneDNN as a candidate for heavy operations: AUTO, ON or OFF")
set(BRISK_CUDA AUTO CACHE STRING "The CUDA backend: AUTO, ON or OFF")
# Code for each generation, and with compute_80 a form that the driver of a later one compiles.
set(BRISK_CUDA_ARCHITECTURES "75-real;80;86-real;89-real;90a-real" CACHE STRING "GPUs to compile kernels for, as in CMAKE_CUDA_ARCHITECTURES")
set(BRISK_SANITIZE "" CACHE STRING "Sanitizers: empty, address (with undefined) or thread")
set_property(CACHE BRISK_ONEDNN PROPERTY STRINGS AUTO ON OFF)
set_property(CACHE BRISK_CUDA PROPERTY STRINGS AUTO ON OFF)
set_property(CACHE BRISK_SANITIZE PROPERTY STRINGS "" address thread)

if(NOT BRISK_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "BRISK_CUDA=${BRISK_CUDA}: allowed are AUTO, ON and OFF.")
endif()
if(NOT BRISK_SANITIZE MATCHES "^(|address|thread)$")
  message(FATAL_ERROR "BRISK_SANITIZE=${BRISK_SANITIZE}: allowed are address, thread and nothing.")
endif()

if(PROJECT_IS_TOP_LEVEL)
  option(BUILD_SHARED_LIBS "Build Brisk as a shared library" ON)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
  endif()
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
endif()

# Variables of this folder only: a parent project does not see them.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
