// The devices that tests of a whole step run on: the CPU, and a GPU where there is one.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"

namespace brisk::test {

inline std::vector<Device> devices() {
  std::string why_not;
  return backend::devices(why_not);
}

/// "cpu", "gpu0": for names of tests.
inline std::string device_name(Device device) {
  std::string name = device.text();
  std::erase(name, ' ');
  return name;
}

}  // namespace brisk::test
