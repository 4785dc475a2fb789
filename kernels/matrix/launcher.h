// What the launchers of matrix kernels share: checks, and from a choice to a kernel's Output and grid.
#pragma once

#include <string>

#include "kernels/matrix/choose.h"
#include "kernels/matrix/main_loop.h"
#include "kernels/matrix/matrix_operand.h"
#include "kernels/matrix/multiply.h"

namespace brisk::kernels {

inline void check_data(const OptionNames& names, const char* option, const void* pointer) {
  check_pointer(pointer, names(option).c_str());
  if (!aligned(pointer, 16)) {
    throw Error(ErrorCode::option, names(option), "must be a multiple of 16 bytes, as memory of cudaMalloc is");
  }
}

/// The product's slices are dropped where there is no workspace for them.
inline void check_workspace(const OptionNames& names, const MatrixSizes& sizes, MatrixChoice& choice,
                            const void* workspace, int64_t bytes, const int32_t* counters) {
  if (workspace == nullptr) choice.slices = 1;
  if (choice.slices == 1) return;
  const int64_t needed = choice.workspace_bytes(sizes.parts);
  check_option(bytes >= needed, names("workspace_bytes").c_str(), bytes,
               (std::to_string(needed) + " bytes are needed; ask the launcher's _workspace_bytes").c_str());
  check_data(names, "workspace", workspace);
  check_pointer(counters, names("counters").c_str());
  check_option(choice.tiles() * sizes.parts * static_cast<int64_t>(sizeof(int32_t)) <= kCounterBytes,
               names("split_k").c_str(), sizes.split_k,
               "is for at most 1024 tiles; use 1 (more tiles fill the device alone)");
}

inline Output output_of(const MatrixChoice& choice, int64_t columns, void* workspace, int32_t* counters) {
  Output output{};
  output.partials = static_cast<float*>(workspace);
  output.counters = reinterpret_cast<unsigned*>(counters);
  output.alpha = 1;
  output.columns = static_cast<int>(columns);
  output.row_tiles = static_cast<int>(choice.row_tiles);
  output.column_tiles = static_cast<int>(choice.column_tiles);
  output.slices = static_cast<int>(choice.slices);
  output.quads = columns % 4 == 0;
  return output;
}

inline dim3 grid_of(const OptionNames& names, const MatrixChoice& choice, int64_t parts) {
  check_option(choice.tiles() <= INT32_MAX, names("m").c_str(), choice.row_tiles * choice.rows,
               "times n is more than one launch covers");
  return dim3(static_cast<unsigned>(choice.tiles()), static_cast<unsigned>(choice.slices),
              static_cast<unsigned>(parts));
}

/// Calls f with the TensorCores (or Lanes) of a type and tile, f(math, aligned): aligned is a std::bool_constant.
/// kWarpN: of the largest tile. 64 reads the least shared memory, 32 leaves registers for operands that are gathered
/// row by row.
template <bool kARows, bool kBRows, int kWarpN, class F>
void dispatch_math(DType dtype, MatrixTile tile, bool aligned, F f) {
  if (dtype == DType::f32) {
    f(std::type_identity<Lanes<kARows, kBRows>>(), std::false_type());
    return;
  }
  const auto run = [&](auto element) {
    using T = decltype(element);
    if (!aligned) {
      f(std::type_identity<TensorCores<T, 64, 64, 32, 32, kARows, kBRows>>(), std::false_type());
    } else if (tile == MatrixTile::m128n128) {
      f(std::type_identity<TensorCores<T, 128, 128, 64, kWarpN, kARows, kBRows>>(), std::true_type());
    } else if (tile == MatrixTile::m128n64) {
      f(std::type_identity<TensorCores<T, 128, 64, 64, 32, kARows, kBRows>>(), std::true_type());
    } else {
      f(std::type_identity<TensorCores<T, 64, 64, 32, 32, kARows, kBRows>>(), std::true_type());
    }
  };
  if (dtype == DType::f16) {
    run(__half());
  } else {
    run(__nv_bfloat16());
  }
}

}  // namespace brisk::kernels
