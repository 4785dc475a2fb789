// Views whose elements are about to be read by the host.
#pragma once

#include <string>

#include "brisk/tensor.h"

namespace brisk {

/// Throws Error [data] naming `field` when the view lies on a device or, though it has elements, points to nothing.
void check_host(const std::string& field, const ConstView& view);

}  // namespace brisk
