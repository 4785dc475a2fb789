// Opening the devices of the machine, and saying why one cannot be used.
#pragma once

#include <string>
#include <vector>

#include "backend/cuda/lowering.h"
#include "backend/cuda/runtime/handles.h"

namespace brisk::backend::cuda {

/// The oldest that the kernels are made for (Turing).
constexpr int kLeastCapability = 75;

/// What the driver tells of a device without touching it.
struct DeviceFacts {
  std::string name;
  Profile profile;
};

/// Devices that can be used, in CUDA's order; `why_not` says what stands against each other, or against all.
std::vector<int> usable_devices(std::string& why_not);

/// Throws Error [backend] saying why it cannot be used and what to do.
DeviceFacts device_facts(int index);

/// One device of the process. Everything computed on it is queued on one stream, so that what two steps do to one model
/// is in order; copies of inputs to it have a stream of their own.
struct OpenDevice {
  int index = 0;
  DeviceFacts facts;
  Stream compute, copies;
};

/// Throws as device_facts does.
OpenDevice open_device(int index);

}  // namespace brisk::backend::cuda
