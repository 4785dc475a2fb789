// What closes a window: statistics of the gradients, the optimizers' walks, the loss scale, the next update's scalars.
#include "brisk/kernels/optimizer.h"

#include <algorithm>
#include <cstring>

#include "backend/backend.h"
#include "backend/cuda/lower/lower.h"

namespace brisk::backend::cuda {
namespace {

using kernels::StagedTensor;
using kernels::UpdateTensor;

/// A table of the device: what is known before addresses are, and how many chunks it has.
template <class Row>
struct Rows {
  std::vector<Row> rows;
  int64_t chunks = 0;
  explicit Rows(std::vector<Row> list) : rows(std::move(list)) { chunks = kernels::number_chunks(rows); }
  int64_t size() const { return static_cast<int64_t>(rows.size()); }
  /// `set`(row, its index, operands) writes the addresses.
  template <class Set>
  int add(Lowering& lowering, Set set) const {
    return lowering.table(size() * static_cast<int64_t>(sizeof(Row)),
                          [list = rows, set](const Operands& o, void* host) {
                            std::vector<Row> filled = list;
                            for (size_t i = 0; i < filled.size(); ++i) set(filled[i], static_cast<int>(i), o);
                            std::memcpy(host, filled.data(), filled.size() * sizeof(Row));
                          });
  }
};

/// What both walks have: inputs are `scalars` and stats, then `stride` for each parameter.
struct Walk {
  int first = 0, stride = 0, parameters = 0;
  Rows<UpdateTensor> rows;
  int table = -1;
};

Walk make_walk(const Call& call, int scalars, int moments, Lowering& lowering) {
  const graph::Attributes& attributes = call.node.attributes;
  const int first = scalars + 1, stride = 2 + moments, parameters = (call.inputs() - first) / stride;
  const std::vector<int64_t>& shadowed = attributes.integers("shadowed");
  std::vector<UpdateTensor> list(static_cast<size_t>(parameters));
  for (int i = 0; i < parameters; ++i) {
    UpdateTensor& row = list[static_cast<size_t>(i)];
    row.count = call.output(i).elements();
    row.rate_scale = static_cast<float>(attributes.reals("rate_scale")[static_cast<size_t>(i)]);
    row.weight_decay = static_cast<float>(attributes.reals("weight_decay")[static_cast<size_t>(i)]);
    if (!shadowed.empty()) row.shadow_type = call.output((1 + moments) * parameters).dtype;
  }
  Walk walk{first, stride, parameters, Rows<UpdateTensor>(std::move(list)), -1};
  walk.table = walk.rows.add(lowering, [=](UpdateTensor& row, int i, const Operands& o) {
    row.gradient = o.input<float>(first + i * stride + 1);
    row.parameter = o.output<float>(i);
    if (moments > 0) row.moment1 = o.output<float>(parameters + i);
    if (moments > 1) row.moment2 = o.output<float>(2 * parameters + i);
    const auto shadow = std::find(shadowed.begin(), shadowed.end(), int64_t{i});
    if (shadow != shadowed.end())
      row.shadow = o.out[(1 + moments) * parameters + static_cast<int>(shadow - shadowed.begin())];
  });
  return walk;
}

}  // namespace

void lower_gradient_stats(const Call& call, Lowering& lowering) {
  const bool scaled = call.node.attributes.flag("scaled");
  const int first = scaled ? 2 : 1;
  std::vector<UpdateTensor> list(static_cast<size_t>(call.inputs() - first));
  for (size_t i = 0; i < list.size(); ++i) {
    const int input = static_cast<int>(i) + first;
    list[i].count = call.input(input).elements();
    list[i].slot = call.graph.value(call.node.inputs[static_cast<size_t>(input)]).slot;
  }
  const Rows<UpdateTensor> rows(std::move(list));
  const int table = rows.add(
      lowering, [first](UpdateTensor& row, int i, const Operands& o) { row.gradient = o.input<float>(first + i); });
  kernels::GradientStatsOptions options{
      .chunks = rows.chunks, .clip_norm = call.node.attributes.real("clip_norm"), .tensors = rows.size()};
  options.workspace_bytes = kernels::gradient_stats_workspace_bytes(options.chunks);
  const Location workspace = in_workspace(lowering, options.workspace_bytes);
  launch(
      call, lowering, "gradient_stats",
      [=](const Operands& o, CudaStream stream) {
        kernels::GradientStatsOptions run = options;
        run.node = o.node;
        run.ratio = o.input<float>(0);
        run.scale = scaled ? o.input<float>(1) : nullptr;
        run.stats = o.output<float>(0);
        run.status = scaled ? nullptr : o.status;  // with a loss scale it is no error
        run.table = o.table<UpdateTensor>(table);
        run.workspace = workspace.at(o);
        kernels::gradient_stats(run, stream);
      },
      2);
}

void lower_sgd_walk(const Call& call, Lowering& lowering) {
  const graph::Attributes& attributes = call.node.attributes;
  const double momentum = attributes.real("momentum");
  const Walk walk = make_walk(call, 3, momentum != 0 ? 1 : 0, lowering);
  const kernels::SgdOptions options{.chunks = walk.rows.chunks,
                                    .dampening = attributes.real("dampening"),
                                    .momentum = momentum,
                                    .nesterov = attributes.flag("nesterov"),
                                    .tensors = walk.rows.size()};
  launch(call, lowering, "sgd", [=, table = walk.table](const Operands& o, CudaStream stream) {
    kernels::SgdOptions run = options;
    run.first = o.input<float>(2);
    run.rate = o.input<float>(0);
    run.ratio = o.input<float>(1);
    run.stats = o.input<float>(3);
    run.status = o.status;
    run.table = o.table<UpdateTensor>(table);
    kernels::sgd(run, stream);
  });
}

void lower_adam_walk(const Call& call, Lowering& lowering) {
  const graph::Attributes& attributes = call.node.attributes;
  const Walk walk = make_walk(call, 4, 2, lowering);
  const kernels::AdamOptions options{.beta1 = attributes.real("beta1"),
                                     .beta2 = attributes.real("beta2"),
                                     .chunks = walk.rows.chunks,
                                     .epsilon = attributes.real("epsilon"),
                                     .tensors = walk.rows.size()};
  const bool decoupled = attributes.flag("decoupled");
  launch(call, lowering, decoupled ? "adamw" : "adam", [=, table = walk.table](const Operands& o, CudaStream stream) {
    kernels::AdamOptions run = options;
    run.bias1 = o.input<float>(2);
    run.bias2 = o.input<float>(3);
    run.rate = o.input<float>(0);
    run.ratio = o.input<float>(1);
    run.stats = o.input<float>(4);
    run.status = o.status;
    run.table = o.table<UpdateTensor>(table);
    (decoupled ? kernels::adamw : kernels::adam)(run, stream);
  });
}

void lower_scale_update(const Call& call, Lowering& lowering) {
  const graph::Attributes& attributes = call.node.attributes;
  const kernels::ScaleUpdateOptions options{.backoff = attributes.real("backoff"),
                                            .growth = attributes.real("growth"),
                                            .interval = attributes.integer("interval"),
                                            .maximum = attributes.real("maximum"),
                                            .minimum = attributes.real("minimum")};
  const bool scaled = attributes.flag("scaled");
  launch(call, lowering, "scale_update", [=](const Operands& o, CudaStream stream) {
    kernels::ScaleUpdateOptions run = options;
    run.counters = o.output<int64_t>(1);
    run.scale = scaled ? o.output<float>(0) : nullptr;
    run.stats = o.input<float>(0);
    run.status = o.status;
    kernels::scale_update(run, stream);
  });
}

void lower_select_scalars(const Call& call, Lowering& lowering) {
  const auto columns = static_cast<int64_t>(call.graph.scalars.size());
  launch(call, lowering, "select_rates", [=](const Operands& o, CudaStream stream) {
    kernels::select_rates({.columns = columns,
                           .counters = o.input<int64_t>(0),
                           .rows = kScheduledUpdates,
                           .scalars = o.selected,
                           .table = o.schedule},
                          stream);
  });
}

void lower_commit_staged(const Call& call, Lowering& lowering) {
  std::vector<StagedTensor> list(call.out.size());
  for (size_t i = 0; i < list.size(); ++i) list[i].count = call.output(static_cast<int>(i)).elements();
  const Rows<StagedTensor> rows(std::move(list));
  const int table = rows.add(lowering, [](StagedTensor& row, int i, const Operands& o) {
    row.from = o.input<float>(1 + i);
    row.to = o.output<float>(i);
  });
  launch(call, lowering, "commit_staged",
         [=, chunks = rows.chunks, tensors = rows.size()](const Operands& o, CudaStream stream) {
           kernels::commit_staged({.chunks = chunks,
                                   .stats = o.input<float>(0),
                                   .status = o.status,
                                   .table = o.table<StagedTensor>(table),
                                   .tensors = tensors},
                                  stream);
         });
}

}  // namespace brisk::backend::cuda
