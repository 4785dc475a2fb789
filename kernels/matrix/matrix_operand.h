// A matrix as an operand of the main loop. An operand is made for one thread and one row or column of tiles ("origin");
// copy() copies the thread's share of the tile at k0. What lies outside is zero.
#pragma once

#include "kernels/matrix/tile.h"

namespace brisk::kernels {

template <class Element, int kExtent, int kThreads, bool kAlongRow, bool kAligned>
class MatrixOperand {
 public:
  using T = Element;
  static constexpr bool kAlongK = kAlongRow;
  /// [rows, columns]: columns are k when along k, else rows.
  struct Parameters {
    const T* data;
    int rows, columns, unit;
  };

  __device__ __forceinline__ MatrixOperand(const Parameters& parameters, int origin)
      : p_(parameters),
        row_(Shares::first_row() + (kAlongK ? origin : 0)),
        column_(Shares::element() + (kAlongK ? 0 : origin)),
        start_(p_.data + int64_t{row_} * p_.columns + column_) {}

  __device__ __forceinline__ void copy(T* tile, int k0) const {
    const int row = row_ + (kAlongK ? 0 : k0), column = column_ + (kAlongK ? k0 : 0);
    const T* line = start_ + int64_t{k0} * (kAlongK ? 1 : p_.columns);
#pragma unroll
    for (int j = 0; j < Shares::kCount; ++j, line += int64_t{Shares::kRowStep} * p_.columns) {
      const bool inside = row + j * Shares::kRowStep < p_.rows;
      copy_chunk<kAligned>(Shares::place(tile, j), p_.unit, p_.data,
                           [&](int e) { return inside && column + e < p_.columns ? line + e : nullptr; });
    }
  }

 private:
  using Shares = Share<T, kExtent, kThreads, kAlongK>;
  const Parameters& p_;
  int row_, column_;
  const T* start_;
};

}  // namespace brisk::kernels
