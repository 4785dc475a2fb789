// Pooling.
#include "brisk/kernels/pool.h"

#include "backend/cuda/lower/lower.h"

namespace brisk::backend::cuda {
namespace {

/// What all four option structs have; image: the larger side.
template <class Options>
Options sizes(const Call& call, const graph::ValueType& image) {
  const graph::Attributes& a = call.node.attributes;
  const auto pair = [&](const char* name) { return std::array<int64_t, 2>{a.integers(name)[0], a.integers(name)[1]}; };
  Options options;
  options.dtype = image.dtype;
  options.shape = {.batch = image.rows * call.samples,
                   .channels = image.shape[0],
                   .height = image.shape[1],
                   .kernel = pair("kernel"),
                   .padding = pair("padding"),
                   .stride = pair("stride"),
                   .width = image.shape[2]};
  return options;
}

}  // namespace

void lower_max_pool2d(const Call& call, Lowering& lowering) {
  launch(call, lowering, "max_pool2d",
         [options = sizes<kernels::MaxPool2dOptions>(call, call.input(0))](const Operands& o, CudaStream stream) {
           kernels::MaxPool2dOptions run = options;
           run.index = o.output<int32_t>(1);
           run.x = o.in[0];
           run.y = o.out[0];
           kernels::max_pool2d(run, stream);
         });
}

void lower_max_pool2d_gradient(const Call& call, Lowering& lowering) {
  launch(
      call, lowering, "max_pool2d_gradient",
      [options = sizes<kernels::MaxPool2dGradientOptions>(call, call.output(0))](const Operands& o, CudaStream stream) {
        kernels::MaxPool2dGradientOptions run = options;
        run.dx = o.out[0];
        run.dy = o.in[0];
        run.index = o.input<int32_t>(1);
        kernels::max_pool2d_gradient(run, stream);
      });
}

void lower_avg_pool2d(const Call& call, Lowering& lowering) {
  launch(call, lowering, "avg_pool2d",
         [options = sizes<kernels::AvgPool2dOptions>(call, call.input(0))](const Operands& o, CudaStream stream) {
           kernels::AvgPool2dOptions run = options;
           run.x = o.in[0];
           run.y = o.out[0];
           kernels::avg_pool2d(run, stream);
         });
}

void lower_avg_pool2d_gradient(const Call& call, Lowering& lowering) {
  launch(
      call, lowering, "avg_pool2d_gradient",
      [options = sizes<kernels::AvgPool2dGradientOptions>(call, call.output(0))](const Operands& o, CudaStream stream) {
        kernels::AvgPool2dGradientOptions run = options;
        run.dx = o.out[0];
        run.dy = o.in[0];
        kernels::avg_pool2d_gradient(run, stream);
      });
}

}  // namespace brisk::backend::cuda
