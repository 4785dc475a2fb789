// Softmax, its logarithm, their gradients: over one axis, wherever it lies in memory.
#include "brisk/kernels/softmax.h"

#include "backend/cuda/lower/lower.h"
#include "graph/op_table.h"

namespace brisk::backend::cuda {

void lower_softmax(const Call& call, Lowering& lowering) {
  const Line line = line_of(output_tensor(call, 0), call.node.attributes.integer("axis"));
  const kernels::SoftmaxOptions options{
      .dtype = call.output(0).dtype, .inner = line.inner, .outer = line.outer, .size = line.size};
  const auto kernel = call.node.op->name == "softmax" ? kernels::softmax : kernels::log_softmax;
  launch(call, lowering, call.node.op->name, [=](const Operands& o, CudaStream stream) {
    kernels::SoftmaxOptions run = options;
    run.x = o.in[0];
    run.y = o.out[0];
    kernel(run, stream);
  });
}

void lower_softmax_gradient(const Call& call, Lowering& lowering) {
  const Line line = line_of(output_tensor(call, 0), call.node.attributes.integer("axis"));
  const kernels::SoftmaxGradientOptions options{
      .dtype = call.output(0).dtype, .inner = line.inner, .outer = line.outer, .size = line.size};
  const auto kernel =
      call.node.op->name == "softmax_gradient" ? kernels::softmax_gradient : kernels::log_softmax_gradient;
  launch(call, lowering, call.node.op->name, [=](const Operands& o, CudaStream stream) {
    kernels::SoftmaxGradientOptions run = options;
    run.dx = o.out[0];
    run.dy = o.in[0];
    run.y = o.in[1];
    kernel(run, stream);
  });
}

}  // namespace brisk::backend::cuda
