// The order of samples: a pseudo-random permutation that is looked up, not stored.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "brisk/data.h"

namespace brisk::data {

/// Position i of epoch `epoch` holds sample order[i]: a permutation of 0 .. size - 1, a pure function of
/// (seed, epoch, size, i), so that any position is reached at once and every rank agrees.
/// A Feistel network on Z_a x Z_b with a b just above size (J. Black, P. Rogaway, "Ciphers with arbitrary finite
/// domains", 2002); values beyond size are walked on.
class Order {
 public:
  /// size >= 1.
  Order(uint64_t seed, int64_t epoch, int64_t size);
  int64_t size() const { return static_cast<int64_t>(size_); }
  /// 0 <= i < size().
  int64_t operator[](int64_t i) const;

 private:
  static constexpr int kRounds = 12;
  uint64_t permute(uint64_t x) const;
  uint64_t size_;
  uint64_t a_;
  uint64_t b_;
  std::array<uint64_t, kRounds> keys_;
};

/// Which of 0 .. count - 1 go to which part. Throws Error [option] when one would be empty.
struct SplitRows {
  std::vector<int64_t> first;
  std::vector<int64_t> second;
};
SplitRows split_rows(const SplitOptions& options, int64_t count);

}  // namespace brisk::data
