#include "exec/devices.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "brisk/device.h"
#include "core/log.h"

namespace brisk {
namespace exec {
namespace {

std::mutex stand_ins_mutex;
std::vector<std::pair<Device, const backend::Backend*>> stand_ins;

const backend::Backend* stand_in_of(Device device) {
  const std::lock_guard lock(stand_ins_mutex);
  for (const auto& [replaced, backend] : stand_ins)
    if (replaced == device) return backend;
  return nullptr;
}

}  // namespace

const backend::Backend& backend_of(Device device) {
  const backend::Backend* const stand_in = stand_in_of(device);
  return stand_in ? *stand_in : backend::backend_for(device);
}

std::shared_ptr<const backend::Target> target_of(Device device) {
  const backend::Backend* const stand_in = stand_in_of(device);
  return stand_in ? stand_in->target() : backend::target_for(device);
}

std::vector<Device> usable_devices(std::string& why_not) {
  std::vector<Device> found;
  {
    const std::lock_guard lock(stand_ins_mutex);
    for (const auto& [device, backend] : stand_ins) found.push_back(device);
  }
  for (const Device device : backend::devices(why_not))
    if (std::find(found.begin(), found.end(), device) == found.end()) found.push_back(device);
  return found;
}

StandIn::StandIn(Device device, const backend::Backend& backend) : device_(device) {
  const std::lock_guard lock(stand_ins_mutex);
  stand_ins.emplace_back(device, &backend);
}

StandIn::~StandIn() {
  const std::lock_guard lock(stand_ins_mutex);
  stand_ins.erase(std::find_if(stand_ins.begin(), stand_ins.end(),
                               [this](const auto& stand_in) { return stand_in.first == device_; }));
}

}  // namespace exec

Device best_device() {
  std::string why_not;
  const Device best = exec::usable_devices(why_not).front();
  const std::string target = exec::target_of(best)->name();
  if (best.kind() == Device::Kind::cpu)
    log_warning("gpu: ", why_not, "; training on ", target);
  else
    log_info("training on ", best.text(), ": ", target);
  return best;
}

}  // namespace brisk
