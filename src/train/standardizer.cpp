// A Standardizer as the first layer of a model.
#include "brisk/ops/elementwise.h"
#include "brisk/tabular.h"
#include "core/text.h"

namespace brisk {

Var Standardizer::operator()(Var x, Where where) const {
  Shape sample;
  for (int axis = 1; axis < x.rank(); ++axis) sample.append(x.dim(axis));
  if (x.dtype() != DType::f32 || sample.count() != static_cast<int64_t>(mean_.size()))
    throw Error(
        ErrorCode::shape, "Standardizer",
        cat("input must be f32 with ", mean_.size(), " elements a sample, got ", name(x.dtype()), " ", x.text()),
        where);
  const auto numbers = [&](const char* called, const std::vector<double>& values) {
    return buffer(called, Tensor(std::vector<float>(values.begin(), values.end()), sample), where);
  };
  const Scope scope("scale");
  const Var mean = numbers("mean", mean_);
  const Var deviation = numbers("deviation", deviation_);
  // What does not vary, has no deviation to divide by: 0 / (0 + 1).
  const Var varies = deviation > 0.0;
  return (x - mean) * (varies / (deviation + (1.0 - varies)));
}

}  // namespace brisk
