# The CUDA headers, with which the emulation in tests/simt compiles the kernels on machines without a GPU.
find_path(BRISK_CUDA_INCLUDE cuda_bf16.hpp
  HINTS "$ENV{CUDA_PATH}" "$ENV{CUDA_HOME}" /usr/local/cuda PATH_SUFFIXES include)
mark_as_advanced(BRISK_CUDA_INCLUDE)
