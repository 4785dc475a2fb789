// Reshape, concat, slice and its derivative, dimensions in another order, frames, constants, element types.
#include <algorithm>

#include "backend/cuda/lower/lower.h"
#include "brisk/kernels/layout.h"
#include "core/text.h"

namespace brisk::backend::cuda {
namespace {

constexpr size_t kBoxDims = 8;  ///< of copy_box

/// The dimension that a per-sample axis is.
size_t dimension_of(const Tensor& tensor, int64_t axis) { return static_cast<size_t>(axis) + (tensor.batched ? 1 : 0); }

/// Where element `first` along a dimension lies.
Location from_element(Location location, const Tensor& tensor, size_t dimension, int64_t first) {
  location.first += first * tensor.strides[dimension] * size_of(tensor.dtype);
  return location;
}

/// The input inside a frame of `value`; before: by dimension.
void lower_frame(const Call& call, const std::vector<int64_t>& before, double value, Lowering& lowering) {
  const Tensor in = input_tensor(call, 0), out = output_tensor(call, 0);
  launch(call, lowering, "copy_box",
         [=, begin = out.in_memory(before), dims = out.in_memory(out.dims), input_dims = out.in_memory(in.dims),
          strides = out.in_memory(in.strides)](const Operands& o, CudaStream stream) {
           kernels::copy_box({.before = begin,
                              .dims = dims,
                              .dtype = out.dtype,
                              .value = value,
                              .x = o.in[0],
                              .x_dims = input_dims,
                              .x_strides = strides,
                              .y = o.out[0]},
                             stream);
         });
}

}  // namespace

// Left out where the output is a view. Elements keep their row-major order, whatever the layouts are.
void lower_reshape(const Call& call, Lowering& lowering) {
  const Tensor in = input_tensor(call, 0), out = output_tensor(call, 0);
  const bool moved_in = in.strides != row_major(in).strides, moved_out = out.strides != row_major(out).strides;
  if (!moved_out) {
    copy(lowering, input(0), in, output(0), row_major(in));
  } else if (!moved_in) {
    copy(lowering, input(0), row_major(out), output(0), out);
  } else if (in.dims == out.dims) {
    copy(lowering, input(0), in, output(0), out);
  } else {
    const Location between = in_workspace(lowering, in.count() * size_of(in.dtype));
    copy(lowering, input(0), in, between, row_major(in));
    copy(lowering, between, row_major(out), output(0), out);
  }
}

void lower_concat(const Call& call, Lowering& lowering) {
  const Tensor out = output_tensor(call, 0);
  const size_t dimension = dimension_of(out, call.node.attributes.integer("axis"));
  int64_t first = 0;
  for (int i = 0; i < call.inputs(); ++i) {
    const Tensor in = input_tensor(call, i);
    Tensor part = out;
    part.dims = in.dims;
    copy(lowering, input(i), in, from_element(output(0), out, dimension, first), part);
    first += in.dims[dimension];
  }
}

void lower_slice(const Call& call, Lowering& lowering) {
  const Tensor in = input_tensor(call, 0), out = output_tensor(call, 0);
  const size_t dimension = dimension_of(in, call.node.attributes.integer("axis"));
  Tensor part = in;
  part.dims = out.dims;
  copy(lowering, from_element(input(0), in, dimension, call.node.attributes.integer("first")), part, output(0), out);
}

void lower_permute(const Call& call, Lowering& lowering) {
  const Tensor in = input_tensor(call, 0), out = output_tensor(call, 0);
  Tensor turned = out;
  const std::vector<int64_t>& axes = call.node.attributes.integers("axes");
  if (in.batched) turned.strides[0] = in.strides[0];
  for (size_t i = 0; i < axes.size(); ++i)
    turned.strides[dimension_of(out, static_cast<int64_t>(i))] = in.strides[dimension_of(in, axes[i])];
  copy(lowering, input(0), turned, output(0), out);
}

std::string padding_declines(const Call& call) {
  const size_t dims = output_tensor(call, 0).dims.size();
  return dims <= kBoxDims ? "" : cat("its kernel has ", kBoxDims, " dimensions, not ", dims);
}

void lower_pad_slice(const Call& call, Lowering& lowering) {
  const Tensor out = output_tensor(call, 0);
  std::vector<int64_t> before(out.dims.size(), 0);
  before[dimension_of(out, call.node.attributes.integer("axis"))] = call.node.attributes.integer("first");
  lower_frame(call, before, 0, lowering);
}

void lower_pad(const Call& call, Lowering& lowering) {
  std::vector<int64_t> before = call.node.attributes.integers("before");
  before.insert(before.begin(), output_tensor(call, 0).dims.size() - before.size(), 0);
  lower_frame(call, before, call.node.attributes.real("value"), lowering);
}

void lower_constant(const Call& call, Lowering& lowering) {
  const std::vector<double>& values = call.node.attributes.reals("values");
  const auto count = static_cast<int64_t>(values.size());
  if (std::all_of(values.begin(), values.end(), [&](double value) { return value == values[0]; })) {
    launch(call, lowering, "fill", [count, value = values[0]](const Operands& o, CudaStream stream) {
      kernels::fill({.count = count, .value = value, .y = o.out[0]}, stream);
    });
    return;
  }
  const int table = lowering.table(count * size_of(DType::f32), [values](const Operands&, void* host) {
    std::transform(values.begin(), values.end(), static_cast<float*>(host),
                   [](double value) { return static_cast<float>(value); });
  });
  launch(call, lowering, "copy", [=](const Operands& o, CudaStream stream) {
    kernels::cast({.count = count, .x = o.tables[table], .y = o.out[0]}, stream);
  });
}

void lower_cast(const Call& call, Lowering& lowering) {
  const Tensor in = input_tensor(call, 0), out = output_tensor(call, 0);
  launch(call, lowering, "cast",
         [=, count = out.count(), from = in.dtype, to = out.dtype](const Operands& o, CudaStream stream) {
           kernels::cast({.count = count, .from = from, .to = to, .x = o.in[0], .y = o.out[0]}, stream);
         });
}

}  // namespace brisk::backend::cuda
