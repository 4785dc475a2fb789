// Operations of a user's, as programs write them.
#pragma once

#include "brisk/op.h"

namespace brisk::test {

/// y = x sigmoid(b x), b per channel. x: [N, C, H, W].
struct LearntSwish : CustomOp {
  std::string name() const override { return "learnt_swish"; }
  TensorType infer(TensorTypes in) const override { return in[0]; }
  Reads backward_reads() const override { return Reads::inputs; }
  void forward(const OpContext& c, ConstViews in, Views out) const override;
  void backward(const OpContext& c, const OpBackward& g) const override;
};

/// With a parameter "b" of ones.
Var learnt_swish(Var x);

}  // namespace brisk::test
