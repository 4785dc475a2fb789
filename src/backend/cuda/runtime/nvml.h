// What the driver's management library (NVML) tells. It is opened at run time: the toolkit has no header for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace brisk::backend::cuda {

struct ManagedDevice {
  std::string name;
  int64_t memory_bytes = 0;
  int64_t free_bytes = 0;
};

struct Management {
  std::string why_not;                 ///< empty: it was opened
  std::string driver_version;          ///< "580.65.06"
  std::vector<ManagedDevice> devices;  ///< all of the machine, in the bus' order; CUDA_VISIBLE_DEVICES changes nothing
};

/// Asks anew each time.
Management ask_management(const char* library = "libnvidia-ml.so.1");

}  // namespace brisk::backend::cuda
