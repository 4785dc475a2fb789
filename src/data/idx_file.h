// One IDX file of unsigned bytes: big-endian header (00 00, type, rank, sizes), then the elements.
// Format: Y. LeCun, C. Cortes, C. Burges, "The MNIST database of handwritten digits".
#pragma once

#include <string>

#include "brisk/tensor.h"

namespace brisk::data {

/// The u8 elements in the file's shape, but that images [N, H, W] become [N, 1, H, W] when `channel` says so. Throws
/// Error [file] unless header and contents are exactly right.
Tensor read_idx_bytes(const std::string& path, bool channel = false);

}  // namespace brisk::data
