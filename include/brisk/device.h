// brisk/device.h: which device to train on.
#pragma once

#include "brisk/export.h"
#include "brisk/tensor.h"

namespace brisk {

/// The best device that can be used now: a GPU, else cpu(). One line of the log says which, and why not a GPU; a
/// missing driver or device is no error.
BRISK_EXPORT Device best_device();

}  // namespace brisk
