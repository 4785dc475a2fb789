// Which devices there are and what they can do, as emulated_device() says.
#include <cstdio>

#include "simt/block.h"
#include "simt/cudart/call.h"
#include "simt/cudart/stream.h"

using brisk::simt::emulated_device;
using brisk::simt::EmulatedDevice;
using brisk::simt::cudart::Call;

namespace {

// Why no device can be used; cudaSuccess: one can.
cudaError_t unusable() {
  const EmulatedDevice& device = emulated_device();
  if (device.driver_version < CUDART_VERSION / 1000 * 1000) return cudaErrorInsufficientDriver;
  return device.count == 0 ? cudaErrorNoDevice : cudaSuccess;
}

int attribute(cudaDeviceAttr name) {
  const EmulatedDevice& device = emulated_device();
  switch (name) {
    case cudaDevAttrMultiProcessorCount:
      return device.processors;
    case cudaDevAttrComputeCapabilityMajor:
      return device.major;
    case cudaDevAttrComputeCapabilityMinor:
      return device.minor;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return static_cast<int>(brisk::simt::SharedMemory::kMostBytes);
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return static_cast<int>(brisk::simt::SharedMemory::kMostStaticBytes);
    case cudaDevAttrMaxThreadsPerBlock:
      return static_cast<int>(brisk::simt::kMaxThreads);
    case cudaDevAttrWarpSize:
      return 32;
    default:
      return 0;
  }
}

}  // namespace

extern "C" {

// As the real one, it leaves *count alone when it fails.
cudaError_t cudaGetDeviceCount(int* count) {
  Call call("cudaGetDeviceCount");
  if (call.failed()) return call.end();
  if (const cudaError_t error = unusable()) return call.end(error);
  *count = emulated_device().count;
  return call.end();
}

cudaError_t cudaGetDevice(int* device) {
  Call call("cudaGetDevice");
  if (call.failed()) return call.end();
  *device = 0;
  return call.end();
}

cudaError_t cudaSetDevice(int device) {
  Call call("cudaSetDevice");
  if (call.failed()) return call.end();
  if (const cudaError_t error = unusable()) return call.end(error);
  return call.end(device >= 0 && device < emulated_device().count ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr name, int) {
  Call call("cudaDeviceGetAttribute");
  if (call.failed()) return call.end();
  *value = attribute(name);
  return call.end();
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int number) {
  Call call("cudaGetDeviceProperties");
  if (call.failed()) return call.end();
  const EmulatedDevice& device = emulated_device();
  if (number < 0 || number >= device.count) return call.end(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "%s", device.name.c_str());
  properties->major = device.major;
  properties->minor = device.minor;
  properties->multiProcessorCount = device.processors;
  properties->totalGlobalMem = device.memory_bytes;
  properties->sharedMemPerBlock = brisk::simt::SharedMemory::kMostStaticBytes;
  properties->sharedMemPerBlockOptin = brisk::simt::SharedMemory::kMostBytes;
  properties->maxThreadsPerBlock = static_cast<int>(brisk::simt::kMaxThreads);
  properties->warpSize = 32;
  return call.end();
}

cudaError_t cudaDriverGetVersion(int* version) {
  Call call("cudaDriverGetVersion");
  if (call.failed()) return call.end();
  *version = emulated_device().driver_version;
  return call.end();
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  Call call("cudaRuntimeGetVersion");
  if (call.failed()) return call.end();
  *version = CUDART_VERSION;
  return call.end();
}

cudaError_t cudaDeviceReset() {
  Call call("cudaDeviceReset");
  brisk::simt::cudart::finish_all();
  brisk::simt::cudart::set_lasting_error(cudaSuccess);
  return call.end();
}
}
