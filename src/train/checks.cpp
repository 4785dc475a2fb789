// Checks before a run.
#include "train/checks.h"

#include "core/text.h"
#include "graph/op_table.h"

namespace brisk::train {
namespace {

/// Whether the node normalises each channel of one sample over a single element, and trains.
bool needs_two_samples(const ModelState& model, const graph::Node& node) {
  if (node.op->name != "batch_norm") return false;
  const graph::ValueType& x = model.graph.type(node.inputs[0]);
  if (x.rows != 1 || x.shape.count() != x.shape.dim(0)) return false;
  const graph::Value& scale = model.graph.value(node.inputs[1]);
  if (scale.place != graph::Place::parameter) return true;
  const graph::ParameterRef& ref = model.graph.parameters[static_cast<size_t>(scale.slot)];
  const ModelState& owner = ref.store == 0 ? model : *model.models[static_cast<size_t>(ref.store)];
  return !owner.segments[static_cast<size_t>(ref.segment)].frozen;
}

}  // namespace

void check_batch_norm(const ModelState& model, const EpochShape& shape) {
  const int64_t last = shape.rows(shape.micro_batches() - 1);
  if (shape.rows(0) != 1 && last != 1) return;
  for (const graph::Node& node : model.graph.nodes) {
    if (!needs_two_samples(model, node)) continue;
    const std::string layer = graph::label(node);
    if (shape.rows(0) == 1) {
      throw Error(ErrorCode::option, cat("StepOptions.batch = ", shape.batch),
                  cat("micro-batches have one sample, and ", layer,
                      " normalises over the samples: it needs two or more to train; use a larger batch"),
                  node.where);
    }
    throw Error(
        ErrorCode::option, "FitOptions.drop_last = false",
        cat("the last micro-batch of an epoch has one sample (", shape.samples, " samples, batch ", shape.batch,
            "), and ", layer,
            " normalises over the samples: it needs two or more to train; use .drop_last = true or another batch"),
        node.where);
  }
}

}  // namespace brisk::train
