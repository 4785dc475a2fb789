// CUDA devices behind the seam's Target.
#pragma once

#include <memory>
#include <string_view>

#include "backend/backend.h"
#include "backend/cuda/lowering.h"

namespace brisk::backend::cuda {

/// Needs no such device.
std::shared_ptr<const Target> make_target(const Profile& profile);

/// Whether an operation's kernels take activations of 16 bits.
bool takes_low(std::string_view op);
/// Whether output 0 may overwrite input i.
bool may_run_in_place(const Call& call, int input);
/// Whether an operation's FLOPs are those of matrix units, where its operands have 16 bits.
bool is_matrix_operation(std::string_view op);
/// Seconds by the profile's rates: operands move once, the workspace is written and read.
double modelled_seconds(const Call& call, const Lowering& lowering);

}  // namespace brisk::backend::cuda
