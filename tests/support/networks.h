// Small networks and batches that several tests train.
#pragma once

#include <cstdint>
#include <vector>

#include "brisk/brisk.h"

namespace brisk::test {

/// The seed's network.
Var lenet(Var x);
/// Convolutions, batch_norm, a residual sum, dropout, one linear layer. x: [N, 3, 8, 8].
Var residual_net(Var x);

/// `rows` samples of the given shape, uniform in [-1, 1), and labels below `classes`, pure in (seed, row).
struct Rows {
  std::vector<float> input;
  std::vector<int64_t> label;
  Shape shape;  ///< with the leading count
  ConstView inputs(int64_t first, int64_t count) const;
  ConstView labels(int64_t first, int64_t count) const;
};
Rows make_rows(int64_t rows, Shape sample, int64_t classes, uint64_t seed);

/// 64-bit hash of all parameters and buffers, bit by bit.
uint64_t hash_of(const Model& model);

}  // namespace brisk::test
