// brisk/ops/indexing.h: operations that take or give indices, which are i64 and count from 0.
#pragma once

#include <cstdint>
#include <string>

#include "brisk/model.h"

namespace brisk {

/// One element a sample, or k: x[n, index[n]]. x: [N, C] f32; index: [N] or [N, k] i64. Returns [N] or [N, k]. The
/// gradient adds what a repeated index collects in the order of k. A run with an index outside 0 .. C - 1 throws Error
/// [data] naming row, index and range, and updates nothing.
BRISK_EXPORT Var gather(Var x, Var index, Where where = Where::here());

/// Where the largest element lies along the last dimension: of equals the first, and NaN is larger than all, as in
/// PyTorch. x: [N, ..., C] f32. Returns [N, ...] i64; gradients stop here.
BRISK_EXPORT Var argmax(Var x, Where where = Where::here());

/// 1 at the index, 0 elsewhere. index: [N, ...] i64. Returns [N, ..., classes] f32. Throws for a bad index as gather
/// does.
BRISK_EXPORT Var one_hot(Var index, int64_t classes, Where where = Where::here());

struct EmbeddingOptions {
  int64_t count = 0;     ///< rows of the table, one more than the largest index; required
  int64_t features = 0;  ///< elements of a row; required
  std::string name{};    ///< empty: embedding1, embedding2, ... in its scope
};

/// Rows of a learnt table. index: [N] or [N, k] i64. Returns [N, features] or [N, k, features]. Parameter "weight"
/// [count, features] begins standard normal, as in PyTorch. Its gradient adds up in a fixed order, for one index a
/// sample that of the samples. Throws for a bad index as gather does.
BRISK_EXPORT Var embedding(Var index, EmbeddingOptions options, Where where = Where::here());

}  // namespace brisk
