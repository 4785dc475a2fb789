// How reductions of [outer, rows, columns] and of long lines are cut into blocks, from sizes alone, and the partial
// results that follow. Host arithmetic, without a CUDA header.
#pragma once

#include <algorithm>
#include <cstdint>

#include "brisk/tensor.h"

namespace brisk::kernels {

constexpr int kRowBlock = 256;       ///< threads of a block of rows
constexpr int kColumnThreads = 256;  ///< of a block of columns

/// Elements in 16 bytes.
inline int64_t full_width(DType dtype) { return dtype == DType::f32 ? 4 : 8; }

/// Threads side by side at most, and the columns that a block has then.
template <int kWidth>
constexpr int kMostAcross = kWidth == 1 ? 32 : 8;
template <int kWidth>
constexpr int kMostColumns = kMostAcross<kWidth>* kWidth;

struct Columns {
  int64_t outer;
  int64_t rows;
  int64_t columns;
  int64_t tiles;  ///< of columns; blocks are (tiles x outer, slices)
  int64_t rows_per_slice;
  int32_t slices;
  int32_t across;  ///< threads side by side, a power of two
};

/// Slices of at least `rows_per_thread` rows a thread, at most `most_blocks` blocks as far as slices make them.
inline Columns make_columns(int64_t outer, int64_t rows, int64_t columns, int64_t width, int64_t rows_per_thread,
                            int64_t most_blocks) {
  Columns c{outer, rows, columns, 1, rows, 1, 1};
  const int64_t most_across = width == 1 ? kMostAcross<1> : kMostAcross<8>;
  while (c.across < most_across && c.across * width < columns) c.across *= 2;
  c.tiles = (columns + c.across * width - 1) / (c.across * width);
  const int64_t per_slice = kColumnThreads / c.across * rows_per_thread;
  const int64_t wanted = std::min((rows + per_slice - 1) / per_slice, most_blocks / (outer * c.tiles));
  const int64_t slices = std::clamp<int64_t>(wanted, 1, 65535);
  c.rows_per_slice = (rows + slices - 1) / slices;
  c.slices = static_cast<int32_t>((rows + c.rows_per_slice - 1) / c.rows_per_slice);
  return c;
}

/// For reductions: about four blocks for each of 128 processors, so that counters are enough (stream.h).
inline Columns reduced_columns(int64_t outer, int64_t rows, int64_t columns, int64_t width) {
  return make_columns(outer, rows, columns, width, 8, 512);
}

/// Floats of `fields` partial results, whichever width is used.
inline int64_t partial_floats(DType dtype, int64_t outer, int64_t rows, int64_t columns, int64_t fields) {
  int64_t slices = 1;
  for (const int64_t width : {int64_t{1}, full_width(dtype)}) {
    slices = std::max<int64_t>(slices, reduced_columns(outer, rows, columns, width).slices);
  }
  return slices > 1 ? slices * fields * outer * columns : 0;
}

/// One line in `slices` blocks of `per_slice` elements.
struct Lines {
  int64_t outer, size, per_slice;
  int32_t slices;
};

/// Long lines that are few are cut, so that about 512 blocks have work of at least 8 vectors a thread.
inline Lines cut_lines(int64_t outer, int64_t size, int64_t width) {
  const int64_t per_block = kRowBlock * width * 8;
  const int64_t slices = std::max<int64_t>(1, std::min((size + per_block - 1) / per_block, 512 / outer));
  const int64_t per_slice = ((size + slices - 1) / slices + width - 1) / width * width;
  return {outer, size, per_slice, static_cast<int32_t>((size + per_slice - 1) / per_slice)};
}

}  // namespace brisk::kernels
