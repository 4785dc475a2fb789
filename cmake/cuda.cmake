# The CUDA toolkit: with it kernels/*.cu become brisk::kernels, and src/backend/cuda/runtime takes the place of its twin no_cuda.
# Devices are no part of the build: the result runs, and says so, on a machine without one. BRISK_CUDA_INCLUDE, the
# headers alone, is enough for the emulation in tests/simt.
find_path(BRISK_CUDA_INCLUDE cuda_bf16.hpp
  HINTS "$ENV{CUDA_PATH}" "$ENV{CUDA_HOME}" /usr/local/cuda PATH_SUFFIXES include)
mark_as_advanced(BRISK_CUDA_INCLUDE)

# Sanitizers see nothing of a device, and what they can see of kernels the emulation has.
set(BRISK_HAVE_CUDA OFF)
if(BRISK_CUDA AND NOT BRISK_SANITIZE)
  find_package(CUDAToolkit 12 QUIET)
  if(CUDAToolkit_FOUND AND CUDAToolkit_NVCC_EXECUTABLE)
    if(NOT DEFINED ENV{CUDACXX})
      set(ENV{CUDACXX} "${CUDAToolkit_NVCC_EXECUTABLE}")
    endif()
    if(NOT CMAKE_CUDA_HOST_COMPILER)
      set(CMAKE_CUDA_HOST_COMPILER "${CMAKE_CXX_COMPILER}")
    endif()
    set(CMAKE_CUDA_ARCHITECTURES "${BRISK_CUDA_ARCHITECTURES}")
    include(CheckLanguage)
    check_language(CUDA)  # this nvcc may not take this host compiler
    if(CMAKE_CUDA_COMPILER)
      enable_language(CUDA)
      set(BRISK_HAVE_CUDA ON)
      if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake before 3.26 does not know that nvcc has C++20
        set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      endif()
    endif()
  endif()
  if(BRISK_CUDA STREQUAL "ON" AND NOT BRISK_HAVE_CUDA)
    message(FATAL_ERROR "BRISK_CUDA=ON, but no CUDA toolkit of version 12 or newer whose nvcc takes ${CMAKE_CXX_COMPILER} "
                        "was found; install NVIDIA's package cuda-toolkit, set CUDAToolkit_ROOT to its folder, or use "
                        "BRISK_CUDA=OFF and train on the CPU.")
  endif()
endif()
if(BRISK_HAVE_CUDA AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
  string(APPEND CMAKE_CUDA_FLAGS " --compress-mode=size")  # a quarter of the size on disk
endif()
if(BRISK_HAVE_CUDA AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  if(BRISK_TESTS)  # what ptxas says of registers and memory is tested
    set(CMAKE_CUDA_COMPILER_LAUNCHER bash "${PROJECT_SOURCE_DIR}/cmake/keep_ptxas_report.sh" ${CMAKE_CUDA_COMPILER_LAUNCHER})
    string(APPEND CMAKE_CUDA_FLAGS " -Xptxas -v")
  endif()
endif()
