// Softmax and its logarithm over one axis of a sample.
#include "brisk/ops/softmax.h"

#include "graph/ops/front.h"

namespace brisk::graph {
namespace {

Types infer_softmax(const InferContext& c) {
  const ValueType& x = want_f32(c, 0);
  axis_of(c, x);
  return {x};
}

Types infer_gradient(const InferContext& c) {
  const ValueType& dy = want_f32(c, 0, "gradient");
  want_type(c, 1, "output", dy);
  axis_of(c, dy);
  return {dy};
}

void derive_softmax(Derivation& d) {
  if (!d.wants(0)) return;
  const std::string gradient = std::string(d.node().op->name) + "_gradient";
  d.set(0, d.emit(gradient, {d.output_gradient(), d.output()}, d.attributes()));
}

OpInfo forward(std::string_view name) {
  return {.name = name,
          .attributes = {{"axis", Kind::integer}},
          .infer = infer_softmax,
          .derive = derive_softmax,
          .backward_reads = Reads::outputs,
          .flops = flops_per_input<5>};
}

OpInfo gradient(std::string_view name) {
  return {.name = name,
          .minimum_inputs = 2,
          .maximum_inputs = 2,
          .attributes = {{"axis", Kind::integer}},
          .infer = infer_gradient,
          .flops = flops_per_input<4>};
}

}  // namespace

std::span<const OpInfo> softmax_ops() {
  static const std::vector<OpInfo> ops = {forward("softmax"), forward("log_softmax"), gradient("softmax_gradient"),
                                          gradient("log_softmax_gradient")};
  return ops;
}

}  // namespace brisk::graph

namespace brisk {

Var softmax(Var x, SoftmaxOptions options, Where where) {
  const int64_t axis = graph::sample_axis(x, "softmax.axis", options.axis, where);
  return graph::apply("softmax", {x}, {{"axis", axis}}, "softmax", where);
}

Var log_softmax(Var x, SoftmaxOptions options, Where where) {
  const int64_t axis = graph::sample_axis(x, "log_softmax.axis", options.axis, where);
  return graph::apply("log_softmax", {x}, {{"axis", axis}}, "log_softmax", where);
}

}  // namespace brisk
