// Random values, and samples dropped as a whole. Dropout is elementwise.
#include "brisk/kernels/random.h"

#include "backend/cuda/lower/lower.h"

namespace brisk::backend::cuda {
namespace {

/// What both kinds of random values have.
template <class Options>
Options draw(const Call& call) {
  const graph::Value& out = call.graph.value(call.out[0]);
  const Numbering numbered = numbering(out);
  Options options;
  options.channels = numbered.channels;
  options.dtype = out.type.dtype;
  options.key = key_of(call.node);
  options.positions = numbered.positions;
  options.sample_elements = out.type.elements();
  options.samples = call.samples;
  return options;
}

}  // namespace

void lower_random_normal(const Call& call, Lowering& lowering) {
  auto options = draw<kernels::RandomNormalOptions>(call);
  options.deviation = call.node.attributes.real("deviation");
  options.mean = call.node.attributes.real("mean");
  launch(call, lowering, "random_normal", [=](const Operands& o, CudaStream stream) {
    kernels::RandomNormalOptions run = options;
    run.run = o.run;
    run.y = o.out[0];
    kernels::random_normal(run, stream);
  });
}

void lower_random_uniform(const Call& call, Lowering& lowering) {
  auto options = draw<kernels::RandomUniformOptions>(call);
  options.high = call.node.attributes.real("high");
  options.low = call.node.attributes.real("low");
  launch(call, lowering, "random_uniform", [=](const Operands& o, CudaStream stream) {
    kernels::RandomUniformOptions run = options;
    run.run = o.run;
    run.y = o.out[0];
    kernels::random_uniform(run, stream);
  });
}

void lower_stochastic_depth(const Call& call, Lowering& lowering) {
  const graph::ValueType& type = call.output(0);
  const kernels::StochasticDepthOptions options{.dtype = type.dtype,
                                                .key = key_of(call.node),
                                                .rate = call.node.attributes.real("rate"),
                                                .row_elements = type.shape.count(),
                                                .rows = type.rows,
                                                .samples = call.samples};
  launch(call, lowering, "stochastic_depth", [=](const Operands& o, CudaStream stream) {
    kernels::StochasticDepthOptions run = options;
    run.x = o.in[0];
    run.run = o.run;
    run.y = o.out[0];
    kernels::stochastic_depth(run, stream);
  });
}

}  // namespace brisk::backend::cuda
