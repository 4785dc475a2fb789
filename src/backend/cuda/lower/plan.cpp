// Load, store, totals, seeds, gradients.
#include "backend/cuda/lower/lower.h"
#include "brisk/kernels/loss.h"

namespace brisk::backend::cuda {

void lower_load(const Call& call, Lowering& lowering) {
  copy(lowering, input(0), input_tensor(call, 0), output(0), output_tensor(call, 0));
}

void lower_store(const Call& call, Lowering& lowering) {
  const size_t first = lowering.launches.size();
  copy(lowering, input(0), input_tensor(call, 0), output(0), output_tensor(call, 0));
  for (size_t i = first; i < lowering.launches.size(); ++i) {
    LaunchFunction& run = lowering.launches[i].run;
    run = [wanted = std::move(run)](const Operands& o, CudaStream stream) {
      if (o.out[0] != nullptr) wanted(o, stream);
    };
  }
}

void lower_total(const Call& call, Lowering& lowering) {
  const int64_t rows = call.input(0).rows * call.samples;
  const Location weight = input_if(call, 1);
  launch(call, lowering, "total", [=](const Operands& o, CudaStream stream) {
    kernels::total({.row_weight = weight.as<const float>(o),
                    .rows = rows,
                    .term = o.input<float>(0),
                    .totals = o.output<double>(0)},
                   stream);
  });
}

void lower_seed_rows(const Call& call, Lowering& lowering) {
  const int64_t rows = call.output(0).rows * call.samples;
  const Location scale = input_if(call, 2);
  // The term is read for its rows alone.
  lowering.launch("seed_rows", static_cast<double>(rows) * sizeof(float), 0, [=](const Operands& o, CudaStream stream) {
    kernels::seed_rows(
        {.loss_scale = scale.as<const float>(o), .rows = rows, .seed = o.input<float>(0), .seeds = o.output<float>(0)},
        stream);
  });
}

void lower_seed_count(const Call& call, Lowering& lowering) {
  const int64_t rows = call.input(0).rows * call.samples;
  const double factor = call.node.attributes.real("factor");
  launch(call, lowering, "seed_count", [=](const Operands& o, CudaStream stream) {
    kernels::seed_count({.factor = factor, .row_weight = o.input<float>(0), .rows = rows, .seed = o.output<float>(0)},
                        stream);
  });
}

void lower_store_gradient(const Call& call, Lowering& lowering) { store_gradient(call, lowering, input(0), 0); }

}  // namespace brisk::backend::cuda
