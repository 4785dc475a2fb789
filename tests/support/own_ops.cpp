#include "support/own_ops.h"

#include <cmath>

namespace brisk::test {

void LearntSwish::forward(const OpContext& c, ConstViews in, Views out) const {
  const float *x = in[0].data<float>(), *b = in[1].data<float>();
  float* y = out[0].data<float>();
  const int64_t channels = in[0].dim(1), area = in[0].dim(2) * in[0].dim(3);
  c.parallel_for(in[0].dim(0) * channels, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r)
      for (int64_t i = r * area; i < (r + 1) * area; ++i) y[i] = x[i] / (1 + std::exp(-b[r % channels] * x[i]));
  });
}

void LearntSwish::backward(const OpContext&, const OpBackward& g) const {
  const float *x = g.inputs[0].data<float>(), *b = g.inputs[1].data<float>(), *dy = g.output_gradients[0].data<float>();
  float *dx = g.input_gradients[0].data<float>(), *db = g.input_gradients[1].data<float>();
  const int64_t n = g.inputs[0].dim(0), channels = g.inputs[0].dim(1), area = g.inputs[0].dim(2) * g.inputs[0].dim(3);
  for (int64_t c = 0; c < channels; ++c) {
    double sum = 0;
    for (int64_t k = c * area; k < n * channels * area; k += channels * area)
      for (int64_t i = k; i < k + area; ++i) {
        const float s = 1 / (1 + std::exp(-b[c] * x[i]));
        dx[i] = dy[i] * s * (1 + b[c] * x[i] * (1 - s));
        sum += double(dy[i]) * x[i] * x[i] * s * (1 - s);
      }
    db[c] = float(sum);
  }
}

Var learnt_swish(Var x) {
  return custom_op(LearntSwish{}, {x, parameter("b", {x.dim(1)}, {.decay = false, .init = init::ones()})});
}

}  // namespace brisk::test
