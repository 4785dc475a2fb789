// Runs one operation of the case table through its lowering on the emulated device, away from any plan.
#pragma once

#include "backend/backend.h"
#include "backend/cuda/lowering.h"
#include "support/run_node.h"

namespace brisk::test {

/// The node with the operands that its 16-bit form has in 16 bits; f32: as it is. Values are rounded to their type, so
/// that reference and kernel start from the same numbers.
struct DeviceCase {
  NodeCase node_case;
  DType dtype = DType::f32;
};
/// Whether the operation has a form of that type.
bool has_form(const NodeCase& node_case, DType dtype);
DeviceCase device_case(NodeCase node_case, DType dtype);

/// Why no kernel takes it; "" when one does.
std::string declined(const DeviceCase& device_case);
/// The implementation that a plan takes; "" when none does.
std::string chosen(const DeviceCase& device_case);
/// Outputs, and everything that a plan relies on checked on the way, as by run_node. `in_place`: the input whose memory
/// output 0 shares, or -1.
Outcome run_on_device(const DeviceCase& device_case, int in_place = -1, std::string_view implementation = "native");
/// The inputs that output 0 may overwrite.
std::vector<int> in_place_inputs(const DeviceCase& device_case);
/// How the outputs are stored.
std::vector<DType> stored_types(const DeviceCase& device_case);

}  // namespace brisk::test
