// Reductions over axes of a sample and over the batch: as they lie in memory, with a copy at the end where the result
// lies otherwise.
#include "brisk/kernels/reduce.h"

#include <algorithm>

#include "backend/cuda/lower/lower.h"
#include "graph/op_table.h"

namespace brisk::backend::cuda {
namespace {

/// Neighbouring dimensions in memory that all go or all stay.
struct Run {
  int64_t size = 1;
  bool goes = false;
};

std::vector<Run> runs_of(const Tensor& in, const std::vector<bool>& goes) {
  std::vector<Run> runs;
  for (const size_t dimension : in.order) {
    if (in.dims[dimension] == 1) continue;
    if (runs.empty() || runs.back().goes != goes[dimension]) runs.push_back({1, goes[dimension]});
    runs.back().size *= in.dims[dimension];
  }
  return runs;
}

std::vector<bool> going(const Tensor& in, const std::vector<int64_t>& axes) {
  std::vector<bool> goes(in.dims.size(), false);
  for (const int64_t axis : axes) goes[static_cast<size_t>(axis) + (in.batched ? 1 : 0)] = true;
  return goes;
}

/// What is left of `in`, as the reduction leaves it, under the dimensions of `out`.
Tensor remainder(const Tensor& in, const std::vector<bool>& goes, const Tensor& out) {
  Tensor left = out;
  const bool keeps = out.dims.size() == in.dims.size();
  std::vector<size_t> place(in.dims.size());
  for (size_t i = 0, next = 0; i < in.dims.size(); ++i) {
    place[i] = next;
    if (keeps || !goes[i]) ++next;
  }
  int64_t stride = 1;
  for (size_t i = in.order.size(); i-- > 0;) {
    const size_t dimension = in.order[i];
    if (goes[dimension]) continue;
    left.strides[place[dimension]] = stride;
    stride *= in.dims[dimension];
  }
  return left;
}

/// Whether both lie in one order, but for dimensions of a single element.
bool same_order(const Tensor& a, const Tensor& b) {
  for (size_t i = 0; i < a.dims.size(); ++i)
    if (a.dims[i] != 1 && a.strides[i] != b.strides[i]) return false;
  return true;
}

/// One launch over [outer][size][inner].
void add_reduction(Lowering& lowering, bool mean, kernels::ReduceOptions options, Location from, Location to) {
  options.workspace_bytes = kernels::reduce_workspace_bytes(options);
  const Location workspace = in_workspace(lowering, options.workspace_bytes);
  const auto outputs = static_cast<double>(options.outer * options.inner);
  const auto inputs = outputs * static_cast<double>(options.size);
  const auto kernel = mean ? kernels::reduce_mean : kernels::reduce_sum;
  lowering.launch(mean ? "reduce_mean" : "reduce_sum",
                  inputs * static_cast<double>(size_of(options.dtype)) +
                      outputs * static_cast<double>(size_of(options.output_dtype)),
                  inputs, [=](const Operands& o, CudaStream stream) {
                    kernels::ReduceOptions run = options;
                    run.counters = o.counters;
                    run.workspace = run.workspace_bytes > 0 ? workspace.at(o) : nullptr;
                    run.x = from.at(o);
                    run.y = to.at(o);
                    kernel(run, stream);
                  });
}

}  // namespace

void lower_reduce(const Call& call, Lowering& lowering) {
  const Tensor in = input_tensor(call, 0), out = output_tensor(call, 0);
  const std::vector<bool> goes = going(in, call.node.attributes.integers("axes"));
  std::vector<Run> runs = runs_of(in, goes);
  const Tensor left = remainder(in, goes, out);
  const bool direct = same_order(left, out);
  const bool mean = call.node.op->name == "reduce_mean";
  // An axis of one element, where there is none other: the kernel casts.
  if (std::none_of(runs.begin(), runs.end(), [](const Run& run) { return run.goes; })) runs.push_back({1, true});
  Location from = input(0);
  DType dtype = in.dtype;
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
    if (!run->goes) continue;
    const bool last = std::none_of(run + 1, runs.rend(), [](const Run& other) { return other.goes; });
    kernels::ReduceOptions options{.dtype = dtype, .output_dtype = last ? out.dtype : DType::f32, .size = run->size};
    for (auto other = runs.rbegin(); other != run; ++other) options.inner *= other->goes ? 1 : other->size;
    for (auto other = run + 1; other != runs.rend(); ++other) options.outer *= other->size;
    const Location to = last && direct
                            ? output(0)
                            : in_workspace(lowering, options.outer * options.inner * size_of(options.output_dtype));
    add_reduction(lowering, mean, options, from, to);
    from = to;
    dtype = options.output_dtype;
  }
  if (!direct) copy(lowering, from, left, output(0), out);
}

void lower_batch_sum(const Call& call, Lowering& lowering) {
  Relaid laid(call, lowering, call.graph.value(call.in[0]), graph::Layout::plain);
  const Location x = laid.read(input(0));
  const graph::ValueType& type = call.input(0);
  kernels::ChannelSumOptions options{
      .channels = type.shape.count(), .dtype = type.dtype, .rows = type.rows * call.samples};
  options.workspace_bytes = kernels::channel_sum_workspace_bytes(options);
  const Location workspace = in_workspace(lowering, options.workspace_bytes);
  const bool adds = is_gradient(call, 0);
  launch(call, lowering, "channel_sum", [=](const Operands& o, CudaStream stream) {
    kernels::ChannelSumOptions run = options;
    run.accumulate = adds && o.accumulate;
    run.counters = o.counters;
    run.workspace = run.workspace_bytes > 0 ? workspace.at(o) : nullptr;
    run.x = x.at(o);
    run.y = o.output<float>(0);
    kernels::channel_sum(run, stream);
  });
}

namespace {

/// Whether the value without the axis lies as the kernel leaves it.
bool maximum_direct(const Tensor& wide, const Tensor& narrow, int64_t axis) {
  const std::vector<bool> goes = going(wide, {axis});
  return same_order(remainder(wide, goes, narrow), narrow);
}

}  // namespace

std::string maximum_declines(const Call& call) {
  const bool backward = call.node.op->name == "reduce_max_gradient";
  const Tensor wide = backward ? output_tensor(call, 0) : input_tensor(call, 0),
               narrow = backward ? input_tensor(call, 0) : output_tensor(call, 0);
  return maximum_direct(wide, narrow, call.node.attributes.integer("axis"))
             ? ""
             : "its kernel would leave the result in another order than it has to lie in";
}

void lower_reduce_max(const Call& call, Lowering& lowering) {
  const Line line = line_of(input_tensor(call, 0), call.node.attributes.integer("axis"));
  const kernels::ReduceMaxOptions options{
      .dtype = call.input(0).dtype, .inner = line.inner, .outer = line.outer, .size = line.size};
  launch(call, lowering, "reduce_max", [=](const Operands& o, CudaStream stream) {
    kernels::ReduceMaxOptions run = options;
    run.index = o.output<int32_t>(1);
    run.x = o.in[0];
    run.y = o.out[0];
    kernels::reduce_max(run, stream);
  });
}

void lower_reduce_max_gradient(const Call& call, Lowering& lowering) {
  const Line line = line_of(output_tensor(call, 0), call.node.attributes.integer("axis"));
  const kernels::ReduceMaxGradientOptions options{
      .dtype = call.output(0).dtype, .inner = line.inner, .outer = line.outer, .size = line.size};
  launch(call, lowering, "reduce_max_gradient", [=](const Operands& o, CudaStream stream) {
    kernels::ReduceMaxGradientOptions run = options;
    run.dx = o.out[0];
    run.dy = o.in[0];
    run.index = o.input<int32_t>(1);
    kernels::reduce_max_gradient(run, stream);
  });
}

}  // namespace brisk::backend::cuda
