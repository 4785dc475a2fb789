// Convolutions and linear layers (1 x 1 convolutions of one pixel) by oneDNN: activations leave the lanes for rows,
// slices of the batch run as primitives of one thread, and what they made goes back into lanes.
#include <dnnl.hpp>

#include <array>
#include <cstring>

#include "backend/cpu/kernels/elementwise.h"
#include "backend/cpu/kernels/reduce.h"
#include "backend/cpu/lower/activation.h"
#include "backend/cpu/lower/relayout.h"
#include "backend/cpu/onednn.h"
#include "backend/cpu/onednn/one_thread.h"
#include "backend/cpu/onednn/program.h"
#include "core/text.h"
#include "graph/op_table.h"

namespace brisk::backend::cpu {
namespace {

using dnnl::memory;
using graph::ValueType;
using Forward = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;

constexpr int64_t kSlices = 8;  ///< most of a batch: enough for eight threads

/// The convolution that a node belongs to; x and y as the forward node sees them.
struct Problem {
  ValueType x, y;
  int64_t images = 0, per_slice = 0, slices = 0;
  int64_t groups = 1;
  memory::dims kernel = {1, 1}, stride = {1, 1}, padding = {0, 0}, dilates = {0, 0};

  static memory::dims sizes(const ValueType& type, int64_t images) {
    const bool image = type.shape.rank() == 3;
    return {images, type.shape[0], image ? type.shape[1] : 1, image ? type.shape[2] : 1};
  }
  static memory::desc any(const memory::dims& sizes) {
    return {sizes, memory::data_type::f32, memory::format_tag::any};
  }
  static memory::desc rows(const memory::dims& sizes) {
    return {sizes, memory::data_type::f32, memory::format_tag::nchw};
  }
  memory::dims weight_sizes() const {
    const int64_t in = x.shape[0] / groups, out = y.shape[0] / groups;
    return {groups, out, in, kernel[0], kernel[1]};
  }
  /// Canonical order: O, H, W, I.
  memory::desc weights() const {
    const memory::dims d = weight_sizes();
    const int64_t pixel = d[2], row = pixel * d[4], filter = row * d[3];
    return {d, memory::data_type::f32, memory::dims{filter * d[1], filter, 1, row, pixel}};
  }
  int64_t weight_count() const { return y.shape[0] * x.shape[0] / groups * kernel[0] * kernel[1]; }
  int64_t bytes(const ValueType& type) const { return images * type.shape.count() * 4; }
  int64_t slice_images(int64_t slice) const { return std::min(per_slice, images - slice * per_slice); }
};

Problem make_problem(const Call& call, const ValueType& x, const ValueType& y) {
  Problem p;
  p.x = x, p.y = y;
  p.images = call.samples * x.rows;
  p.per_slice = ceil_divide(p.images, kSlices);
  p.slices = ceil_divide(p.images, p.per_slice);
  const graph::Attributes& a = call.node.attributes;
  if (!a.has("stride")) return p;
  p.groups = a.integer("groups");
  p.stride = a.integers("stride");
  p.padding = a.integers("padding");
  p.dilates = {a.integers("dilation")[0] - 1, a.integers("dilation")[1] - 1};
  if (a.has("kernel")) {
    p.kernel = a.integers("kernel");
  } else {
    p.kernel = {call.input(1).shape[1], call.input(1).shape[2]};
  }
  return p;
}

/// A kernel of ours run on other operands than the node's.
struct Rebound {
  PhaseFunction kernel;
  std::shared_ptr<const void> parameters;
  Binding from, to;
};

void run_rebound(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& rebound = *static_cast<const Rebound*>(parameters);
  const void* in[] = {rebound.from.in(operands)};
  void* out[] = {rebound.to.in(operands)};
  Operands changed = operands;
  changed.in = in, changed.out = out;
  rebound.kernel(rebound.parameters.get(), changed, first, last);
}

template <class P>
void add_rebound(PhaseFunction kernel, int64_t units, P parameters, Binding from, Binding to, Lowering& lowering) {
  lowering.phase(run_rebound, units, Rebound{kernel, std::make_shared<const P>(std::move(parameters)), from, to});
}

/// Brings an input into rows; where it then lies.
Binding bring(const Call& call, int input, const Problem& p, Lowering& lowering) {
  const Binding to{Binding::workspace, 0, lowering.workspace(p.bytes(call.input(input)))};
  const Relayout move = make_relayout(call, call.input(input));
  add_rebound(BRISK_PHASE(call, store_lanes), units(call, move), move, {Binding::input, input, 0}, to, lowering);
  return to;
}

void bring_back(const Call& call, Binding from, Lowering& lowering) {
  const Relayout move = make_relayout(call, call.output(0));
  add_rebound(BRISK_PHASE(call, load_lanes), units(call, move), move, from, {Binding::output, 0, 0}, lowering);
}

/// The program of one slice as it is built.
struct Slice {
  Program program;
  int64_t images = 0;
  int64_t scratch = 0;

  Binding take(const memory::desc& description) {
    const Binding at{Binding::scratch, 0, scratch};
    scratch += (static_cast<int64_t>(description.get_size()) + 63) / 64 * 64;
    return at;
  }
  /// Rows of this slice within the whole batch's.
  memory rows(const Problem& p, const ValueType& type, Binding whole, int64_t slice) {
    whole.offset += slice * p.per_slice * type.shape.count() * 4;
    return program.add(Problem::rows(Problem::sizes(type, images)), whole);
  }
  memory reordered(const memory& from, const memory::desc& wanted) {
    return from.get_desc() == wanted ? from : program.reordered(from, wanted, take(wanted));
  }
  /// `plain` itself where the primitive writes its format, else a memory to copy from.
  memory result(const memory& plain, const memory::desc& wanted) {
    return plain.get_desc() == wanted ? plain : program.add(wanted, take(wanted));
  }
  void finish(const memory& made, const memory& plain) {
    if (made.get() != plain.get()) program.reorder(made, plain);
  }
};

struct Slices {
  std::vector<std::shared_ptr<const Program>> programs;
  int64_t result_at = 0, result_bytes = 0;  ///< of each in the workspace
};

/// A slice that failed leaves NaN, which the update refuses.
void run_slices(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& slices = *static_cast<const Slices*>(parameters);
  for (int64_t unit = first; unit < last; ++unit) {
    if (slices.programs[static_cast<size_t>(unit)]->run(operands)) continue;
    std::memset(operands.workspace + slices.result_at + unit * slices.result_bytes, 0xFF, 4);
  }
}

/// build(slice, its number) for each slice, in an OpenMP setting of one thread.
template <class F>
void add_slices_phase(const Call& call, const Problem& p, int64_t result_at, int64_t result_bytes, F build,
                      Lowering& lowering) {
  const OneThread one;
  Slices slices{{}, result_at, result_bytes};
  try {
    for (int64_t i = 0; i < p.slices; ++i) {
      Slice slice;
      slice.images = p.slice_images(i);
      build(slice, i);
      lowering.scratch(slice.scratch);
      slices.programs.push_back(std::make_shared<const Program>(std::move(slice.program)));
    }
  } catch (const dnnl::error& error) {
    throw Error(ErrorCode::backend, graph::label(call.node), cat("oneDNN refuses it: ", error.message),
                call.node.where);
  }
  lowering.phase(run_slices, p.slices, std::move(slices));
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

Forward::primitive_desc describe(const Problem& p, int64_t images, bool bias) {
  const memory::desc x = Problem::any(Problem::sizes(p.x, images)), y = Problem::any(Problem::sizes(p.y, images));
  const memory::desc b({p.y.shape[0]}, memory::data_type::f32, memory::format_tag::x);
  const auto kind = dnnl::prop_kind::forward_training;
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const memory::desc w = Problem::any(p.weight_sizes());
  const Forward::desc made = bias
                                 ? Forward::desc(kind, algorithm, x, w, b, y, p.stride, p.dilates, p.padding, p.padding)
                                 : Forward::desc(kind, algorithm, x, w, y, p.stride, p.dilates, p.padding, p.padding);
  return {made, attributes(), onednn_engine()};
}

void lower_forward(const Call& call, Lowering& lowering) {
  const Problem p = make_problem(call, call.input(0), call.output(0));
  const Binding x_at = bring(call, 0, p, lowering);
  const Binding y_at{Binding::workspace, 0, lowering.workspace(p.bytes(p.y))};
  const bool bias = call.inputs() > 2;
  const auto build = [&](Slice& slice, int64_t i) {
    const Forward::primitive_desc made = describe(p, slice.images, bias);
    const memory x = slice.reordered(slice.rows(p, p.x, x_at, i), made.src_desc());
    const memory w = slice.reordered(slice.program.add(p.weights(), {Binding::input, 1, 0}), made.weights_desc());
    const memory y = slice.rows(p, p.y, y_at, i), y_made = slice.result(y, made.dst_desc());
    const memory pad = slice.program.add(made.scratchpad_desc(), slice.take(made.scratchpad_desc()));
    std::vector<std::pair<int, memory>> arguments = {
        {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y_made}, {DNNL_ARG_SCRATCHPAD, pad}};
    if (bias) arguments.emplace_back(DNNL_ARG_BIAS, slice.program.add(made.bias_desc(), {Binding::input, 2, 0}));
    slice.program.step(Forward(made), arguments);
    slice.finish(y_made, y);
  };
  add_slices_phase(call, p, y_at.offset, p.per_slice * p.y.shape.count() * 4, build, lowering);
  bring_back(call, y_at, lowering);
  const Activation activation = activation_of(call);
  if (activation == Activation::none) return;
  // Ours, so that NaN passes and the bits are those of the other candidates.
  TileProgram tiles;
  tiles.batched = true;
  tiles.elements = call.output(0).elements();
  tiles.total = stored(call.output(0), call.blocks(), call.lanes());
  tiles.dims = {tiles.elements};
  tiles.sources.emplace_back();
  tiles.staged = {-1};
  tiles.steps.push_back({.op = activation == Activation::relu   ? Micro::relu
                               : activation == Activation::tanh ? Micro::tanh
                                                                : Micro::sigmoid,
                         .out = 1});
  lowering.scratch(2 * static_cast<int64_t>(sizeof(float*)));
  const Binding y{Binding::output, 0, 0};
  const int64_t units = ceil_divide(tiles.total, kUnit);
  add_rebound(BRISK_PHASE(call, run_tiles), units, std::move(tiles), y, y, lowering);
}

void lower_input_gradient(const Call& call, Lowering& lowering) {
  const Problem p = make_problem(call, call.output(0), call.input(0));
  const Binding dy_at = bring(call, 0, p, lowering);
  const Binding dx_at{Binding::workspace, 0, lowering.workspace(p.bytes(p.x))};
  const auto build = [&](Slice& slice, int64_t i) {
    const memory::desc dx_any = Problem::any(Problem::sizes(p.x, slice.images));
    const memory::desc dy_any = Problem::any(Problem::sizes(p.y, slice.images));
    const BackwardData::desc wanted(dnnl::algorithm::convolution_direct, dx_any, Problem::any(p.weight_sizes()), dy_any,
                                    p.stride, p.dilates, p.padding, p.padding);
    const BackwardData::primitive_desc made(wanted, attributes(), onednn_engine(), describe(p, slice.images, false));
    const memory dy = slice.reordered(slice.rows(p, p.y, dy_at, i), made.diff_dst_desc());
    const memory w = slice.reordered(slice.program.add(p.weights(), {Binding::input, 1, 0}), made.weights_desc());
    const memory dx = slice.rows(p, p.x, dx_at, i), dx_made = slice.result(dx, made.diff_src_desc());
    const memory pad = slice.program.add(made.scratchpad_desc(), slice.take(made.scratchpad_desc()));
    slice.program.step(
        BackwardData(made),
        {{DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DIFF_SRC, dx_made}, {DNNL_ARG_SCRATCHPAD, pad}});
    slice.finish(dx_made, dx);
  };
  add_slices_phase(call, p, dx_at.offset, p.per_slice * p.x.shape.count() * 4, build, lowering);
  bring_back(call, dx_at, lowering);
}

void lower_weight_gradient(const Call& call, Lowering& lowering) {
  const Problem p = make_problem(call, call.input(0), call.input(1));
  const Binding x_at = bring(call, 0, p, lowering), dy_at = bring(call, 1, p, lowering);
  const int64_t partial = p.weight_count() * 4;
  BatchSum sum;
  sum.slices = p.slices, sum.elements = p.weight_count(), sum.per_unit = 8192;
  sum.partials_at = lowering.workspace(p.slices * partial);
  sum.accumulates = call.graph.value(call.node.outputs[0]).place == graph::Place::gradient;
  const auto build = [&](Slice& slice, int64_t i) {
    const memory::desc x_any = Problem::any(Problem::sizes(p.x, slice.images));
    const memory::desc dy_any = Problem::any(Problem::sizes(p.y, slice.images));
    const BackwardWeights::desc wanted(dnnl::algorithm::convolution_direct, x_any, Problem::any(p.weight_sizes()),
                                       dy_any, p.stride, p.dilates, p.padding, p.padding);
    const BackwardWeights::primitive_desc made(wanted, attributes(), onednn_engine(), describe(p, slice.images, false));
    const memory x = slice.reordered(slice.rows(p, p.x, x_at, i), made.src_desc());
    const memory dy = slice.reordered(slice.rows(p, p.y, dy_at, i), made.diff_dst_desc());
    const memory dw = slice.program.add(p.weights(), {Binding::workspace, 0, sum.partials_at + i * partial});
    const memory dw_made = slice.result(dw, made.diff_weights_desc());
    const memory pad = slice.program.add(made.scratchpad_desc(), slice.take(made.scratchpad_desc()));
    slice.program.step(
        BackwardWeights(made),
        {{DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_WEIGHTS, dw_made}, {DNNL_ARG_SCRATCHPAD, pad}});
    slice.finish(dw_made, dw);
  };
  add_slices_phase(call, p, sum.partials_at, partial, build, lowering);
  lowering.phase(BRISK_PHASE(call, add_slices), ceil_divide(sum.elements, sum.per_unit), sum);
}

/// What is moved between lanes and rows, once each way.
std::string declines(const Call& call) {
  if (onednn_comes_first()) return "";
  int64_t bytes = 0;
  for (const auto& ids : {call.node.inputs, call.node.outputs}) {
    for (const graph::ValueId id : ids) {
      const ValueType& type = call.graph.type(id);
      if (type.batched()) bytes += type.elements() * call.samples * size_of(type.dtype);
    }
  }
  return cat("would reorder ", grouped(bytes), " bytes; native needs none");
}

}  // namespace

std::span<const Implementation> onednn_implementations() {
  static const std::array<Implementation, 6> list = {
      {{"conv2d", "onednn", declines, lower_forward},
       {"conv2d_input_gradient", "onednn", declines, lower_input_gradient},
       {"conv2d_weight_gradient", "onednn", declines, lower_weight_gradient},
       {"linear", "onednn", declines, lower_forward},
       {"linear_input_gradient", "onednn", declines, lower_input_gradient},
       {"linear_weight_gradient", "onednn", declines, lower_weight_gradient}}};
  return list;
}

}  // namespace brisk::backend::cpu
