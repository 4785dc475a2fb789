#include "backend/cuda/runtime/handles.h"

#include <cstring>

#include "brisk/error.h"
#include "brisk/tensor.h"
#include "core/text.h"

namespace brisk::backend::cuda {
namespace {

/// Errors after which every call of this process on the device fails.
bool is_lost(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContextIsDestroyed:
      return true;
    default:
      return false;
  }
}

const char* remedy(cudaError_t error) {
  if (is_lost(error))
    return "the device is lost for this process: start the program again from its last checkpoint; should it happen "
           "again, run it under compute-sanitizer, or look for a fault of the hardware in the kernel's log (Xid)";
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "choose a smaller batch, or end other programs that hold the device's memory";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return "this build has no kernels for the device: add its architecture to BRISK_CUDA_ARCHITECTURES, or update "
             "the "
             "driver";
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceAlreadyInUse:
      return "another process has the device for itself (exclusive compute mode); end it, or use another device";
    case cudaErrorSystemNotReady:
      return "the machine's fabric manager is not running yet; start nvidia-fabricmanager";
    case cudaErrorSystemDriverMismatch:
      return "the driver's kernel module and its libraries have different versions; restart the machine";
    default:
      return "run it again; should it happen again, use .device = cpu() and report it with this line";
  }
}

}  // namespace

void check(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return;
  const std::string reason = cudaGetErrorString(error);
  int index = 0;
  if (cudaGetDevice(&index) != cudaSuccess) index = 0;
  cudaGetLastError();
  throw Error(error == cudaErrorMemoryAllocation ? ErrorCode::memory : ErrorCode::backend, gpu(index).text(),
              cat(doing, " failed: ", reason, " (CUDA error ", static_cast<int>(error), "); ", remedy(error)));
}

Stream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  return Stream(stream);
}

Event make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
  return Event(event);
}

PinnedBlock make_pinned(int64_t bytes) {
  if (bytes == 0) return PinnedBlock();
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, static_cast<size_t>(bytes), cudaHostAllocDefault), "taking pinned host memory");
  PinnedBlock block(memory);
  std::memset(memory, 0, static_cast<size_t>(bytes));
  return block;
}

Current::Current(int index) {
  check(cudaGetDevice(&before_), "asking for the current device");
  if (before_ == index) return;
  check(cudaSetDevice(index), "choosing the device");
  changed_ = true;
}

Current::~Current() {
  if (changed_ && cudaSetDevice(before_) != cudaSuccess) cudaGetLastError();
}

}  // namespace brisk::backend::cuda
