// What losses are made of: one value a row, wrapped in a Mean, and the checks that name the loss.
#pragma once

#include <cmath>
#include <string>

#include "brisk/loss.h"
#include "graph/ops/front.h"

namespace brisk::graph {

/// As the kernels hold it.
inline bool finite_f32(double value) { return std::isfinite(static_cast<float>(value)); }

/// The only one; throws Error [data] that names them when there are several.
Var only_value(const Vars& values);

inline void require_batch(const char* what, const Var& x, Where where) {
  if (!Access::type(x).batched())
    throw Error(ErrorCode::shape, what, cat("needs one value a sample, got ", Access::type(x), " without a batch"),
                where);
}

inline Mean row_term(const std::string& name, Var per_row, Where where) {
  Mean::Term term;
  term.name = name;
  term.per_row = per_row;
  term.where = where;
  return Mean(term);
}

}  // namespace brisk::graph
