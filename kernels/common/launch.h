// launch(kernel, grid, block, shared_bytes, stream, arguments...): the one way a kernel is started, on a device and
// under the emulation. Part of kernels/common/cuda.h.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <type_traits>
#include <utility>
#if defined(BRISK_SIMT)
#include <memory>
#include <tuple>

#include "simt/core.h"
#endif

namespace brisk::kernels {

/// Blocks of a launch: an integer or a dim3. It carries the line of the launch, which reports of the emulation name.
struct Grid {
  Grid(dim3 blocks, const char* at_file = __builtin_FILE(), int at_line = __builtin_LINE())
      : size(blocks), file(at_file), line(at_line) {}
  template <class Integer, class = std::enable_if_t<std::is_integral_v<Integer>>>
  Grid(Integer blocks, const char* at_file = __builtin_FILE(), int at_line = __builtin_LINE())
      : size(static_cast<unsigned>(blocks)), file(at_file), line(at_line) {}

  dim3 size;
  const char* file;
  int line;
};

#if defined(BRISK_SIMT)

/// The kernel's arguments; each thread gets a copy of its own.
template <class... Parameters>
struct BoundKernel {
  static void call(void* bound) {
    auto* self = static_cast<BoundKernel*>(bound);
    std::apply(self->kernel, self->arguments);
  }

  void (*kernel)(Parameters...);
  std::tuple<std::decay_t<Parameters>...> arguments;
};

template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), Grid grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
                   Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments), "wrong number of kernel arguments");
  using Bound = BoundKernel<Parameters...>;
  std::size_t parameter_bytes = (std::size_t{0} + ... + sizeof(std::decay_t<Parameters>));
  auto bound = std::make_shared<Bound>(
      Bound{kernel, {static_cast<std::decay_t<Parameters>>(std::forward<Arguments>(arguments))...}});
  return simt::enqueue_launch(
      stream, {&Bound::call, bound, grid.size, block, shared_bytes, {grid.file, grid.line}, parameter_bytes});
}

#else

/// Returns the launch's error; raises the kernel's limit of dynamic shared memory where more than 48 KiB are asked for.
template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), Grid grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
                   Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments), "wrong number of kernel arguments");
  if (shared_bytes > 48 * 1024) {
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
    if (error != cudaSuccess) return error;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = grid.size;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(std::forward<Arguments>(arguments))...);
}

#endif

}  // namespace brisk::kernels
