#include "backend/cuda/runtime/memory.h"

#include "brisk/error.h"
#include "core/text.h"

namespace brisk::backend::cuda {

void* DeviceMemory::allocate(int64_t bytes, const std::string& what) {
  if (bytes == 0) return nullptr;
  const Current current(device_.index);
  void* address = nullptr;
  const cudaError_t error = cudaMalloc(&address, static_cast<size_t>(bytes));
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "asking for free memory");
    throw Error(ErrorCode::memory, what,
                cat("needs ", grouped(bytes), " bytes on ", gpu(device_.index).text(), " (", device_.facts.name, "), ",
                    grouped(static_cast<int64_t>(free)), " of ", grouped(static_cast<int64_t>(total)),
                    " are free; choose a smaller batch, or end other programs that hold the device's memory "
                    "(nvidia-smi lists them)"));
  }
  check(error, "taking device memory");
  DeviceBlock block(address);
  check(cudaMemsetAsync(address, 0, static_cast<size_t>(bytes), device_.compute.get()), "clearing device memory");
  check(cudaStreamSynchronize(device_.compute.get()), "clearing device memory");  // other streams may use it next
  return block.release();
}

/// cudaFree waits for what the device is doing.
void DeviceMemory::release(void* address) noexcept {
  if (cudaFree(address) != cudaSuccess) cudaGetLastError();
}

void DeviceMemory::write(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  const Current current(device_.index);
  check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, device_.compute.get()),
        "copying to the device");
  check(cudaStreamSynchronize(device_.compute.get()), "copying to the device");
}

void DeviceMemory::read(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  const Current current(device_.index);
  check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, device_.compute.get()),
        "copying from the device");
  check(cudaStreamSynchronize(device_.compute.get()), "copying from the device");
}

int64_t DeviceMemory::available_bytes() const {
  const Current current(device_.index);
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for free memory");
  return static_cast<int64_t>(free);
}

}  // namespace brisk::backend::cuda
