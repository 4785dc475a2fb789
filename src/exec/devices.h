// The devices as exec sees them: those of the registry, or what a test puts in the place of one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace brisk::exec {

/// As backend::backend_for, target_for and devices.
const backend::Backend& backend_of(Device device);
std::shared_ptr<const backend::Target> target_of(Device device);
std::vector<Device> usable_devices(std::string& why_not);

/// While it lives, the device is the given backend. What was made on it must be gone before.
class StandIn {
 public:
  StandIn(Device device, const backend::Backend& backend);
  ~StandIn();
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

 private:
  Device device_;
};

}  // namespace brisk::exec
