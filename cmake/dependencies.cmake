# Looks for what Brisk is built with. Nothing found here reaches a program that links the shared library.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(spdlog REQUIRED)

# spdlog and fmt as headers, compiled into the library with hidden visibility: a program that uses spdlog itself keeps a
# registry of its own, and no libspdlog or libfmt is needed where the program runs.
add_library(brisk_private INTERFACE)
target_include_directories(brisk_private SYSTEM INTERFACE
  $<TARGET_PROPERTY:spdlog::spdlog_header_only,INTERFACE_INCLUDE_DIRECTORIES>
  $<TARGET_PROPERTY:nlohmann_json::nlohmann_json,INTERFACE_INCLUDE_DIRECTORIES>
  ${ZLIB_INCLUDE_DIRS})
target_compile_definitions(brisk_private INTERFACE
  $<TARGET_PROPERTY:spdlog::spdlog_header_only,INTERFACE_COMPILE_DEFINITIONS> FMT_HEADER_ONLY=1)

# oneDNN's own CMake package also asks for OpenCL and sets variables of its caller, so the two files are looked up here.
set(BRISK_HAVE_ONEDNN OFF)
if(BRISK_ONEDNN)
  find_path(BRISK_ONEDNN_INCLUDE dnnl.hpp)
  find_library(BRISK_ONEDNN_LIBRARY dnnl)
  mark_as_advanced(BRISK_ONEDNN_INCLUDE BRISK_ONEDNN_LIBRARY)
  if(BRISK_ONEDNN_INCLUDE AND BRISK_ONEDNN_LIBRARY)
    set(BRISK_HAVE_ONEDNN ON)
    file(STRINGS "${BRISK_ONEDNN_INCLUDE}/oneapi/dnnl/dnnl_version.h" lines REGEX "DNNL_VERSION_(MAJOR|MINOR|PATCH)")
    string(REGEX REPLACE "[^0-9]+" "." BRISK_ONEDNN_VERSION "${lines}")
    string(REGEX REPLACE "^\\.|\\.$" "" BRISK_ONEDNN_VERSION "${BRISK_ONEDNN_VERSION}")
  elseif(NOT BRISK_ONEDNN STREQUAL "AUTO")
    message(FATAL_ERROR "BRISK_ONEDNN=${BRISK_ONEDNN}, but dnnl.hpp and libdnnl were not found; install libdnnl-dev, "
                        "set BRISK_ONEDNN_INCLUDE and BRISK_ONEDNN_LIBRARY, or use BRISK_ONEDNN=OFF.")
  endif()
endif()

set(BRISK_HAVE_CLI11 OFF)
if(BRISK_CLI)
  find_package(CLI11 QUIET)
  set(BRISK_HAVE_CLI11 ${CLI11_FOUND})
endif()
set(BRISK_HAVE_GTEST OFF)
if(BRISK_TESTS)
  find_package(GTest QUIET)
  find_package(Python3 QUIET COMPONENTS Interpreter)
  find_package(Eigen3 QUIET NO_MODULE)
  set(BRISK_HAVE_GTEST ${GTest_FOUND})
endif()
set(BRISK_HAVE_BENCHMARK OFF)
if(BRISK_BENCHMARKS)
  find_package(benchmark QUIET)
  set(BRISK_HAVE_BENCHMARK ${benchmark_FOUND})
endif()
