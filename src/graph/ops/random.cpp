// Operations that draw random numbers: a pure function of (stream, attempt, sample, element), never of how work is cut.
#include "brisk/ops/random.h"

#include "graph/ops/front.h"

namespace brisk::graph {
namespace {

Types infer_dropout(const InferContext& c) {
  real_in(c, "rate", 0, 1);
  return {want_batched(c, 0, "input", "[N, ...]")};
}

// The same stream draws the same mask: what was dropped gets no gradient, and nothing need be kept.
void derive_dropout(Derivation& d) {
  if (d.wants(0)) d.set(0, d.emit("dropout", {d.output_gradient()}, d.attributes()));
}

void evaluate_dropout(Graph& graph, int32_t index) {
  Node& node = graph.nodes[static_cast<size_t>(index)];
  node.op = &op("identity");
  node.attributes = {};
}

}  // namespace

std::span<const OpInfo> random_ops() {
  static const std::vector<OpInfo> ops = {
      {.name = "dropout",
       .attributes = {{"rate", Kind::real}, {"stream", Kind::integer}},
       .infer = infer_dropout,
       .derive = derive_dropout,
       .elementwise = true,
       .random = true,
       .training_only = true,
       .evaluation = evaluate_dropout},
  };
  return ops;
}

}  // namespace brisk::graph

namespace brisk {

Var dropout(Var x, double rate, DropoutOptions options, Where where) {
  using namespace graph;
  check_option(rate >= 0 && rate <= 1, "dropout.rate", rate,
               "must be from 0 to 1; it is the share of elements set to 0", where);
  // The stream's key is made of the final name, when the trace ends.
  return Layer(x, "dropout", options.name, where).apply("dropout", {x}, {{"rate", rate}, {"stream", int64_t{0}}});
}

}  // namespace brisk
