// Gather, argmax, one-hot vectors, embeddings.
#include <algorithm>

#include "backend/cpu/kernels/indexing.h"
#include "backend/cpu/lower/dims.h"
#include "backend/cpu/lower/lower.h"

namespace brisk::backend::cpu {
namespace {

constexpr int64_t kUnitFloats = 4096;

/// index: the value that holds the indices, or whose lines are searched.
Indexing indexing_of(const Call& call, const graph::ValueType& index, int64_t choices) {
  Indexing g;
  g.samples = call.samples;
  g.rows = index.rows;
  g.picks = index.shape.count();
  g.choices = choices;
  g.lines = call.blocks() * g.rows * g.picks;
  return g;
}

/// Units of about kUnitFloats, when a line has that many floats a lane.
void add_phase(const Call& call, Indexing g, int64_t elements, PhaseFunction kernel, Lowering& lowering) {
  g.per_unit = std::max<int64_t>(1, kUnitFloats / (elements * call.lanes()));
  lowering.phase(kernel, ceil_divide(g.lines, g.per_unit), g);
}

void check(const Call& call, Indexing g, int32_t indices, Lowering& lowering) {
  g.indices = indices;
  lowering.phase(BRISK_PHASE(call, check_indices), 1, g);
}

}  // namespace

void lower_gather(const Call& call, Lowering& lowering) {
  Indexing g = indexing_of(call, call.input(1), call.input(0).shape[0]);
  check(call, g, 1, lowering);
  g.lines = call.blocks() * g.rows;
  add_phase(call, g, g.picks, BRISK_PHASE(call, gather), lowering);
}

void lower_gather_gradient(const Call& call, Lowering& lowering) {
  Indexing g = indexing_of(call, call.input(1), call.output(0).shape[0]);
  g.lines = call.blocks() * g.rows;
  add_phase(call, g, g.choices, BRISK_PHASE(call, gather_gradient), lowering);
}

void lower_argmax(const Call& call, Lowering& lowering) {
  const Shape& shape = call.input(0).shape;
  const Indexing g = indexing_of(call, call.output(0), shape[shape.rank() - 1]);
  add_phase(call, g, g.choices, BRISK_PHASE(call, argmax), lowering);
}

void lower_one_hot(const Call& call, Lowering& lowering) {
  const Indexing g = indexing_of(call, call.input(0), call.node.attributes.integer("classes"));
  check(call, g, 0, lowering);
  add_phase(call, g, g.choices, BRISK_PHASE(call, one_hot), lowering);
}

void lower_embedding(const Call& call, Lowering& lowering) {
  Indexing g = indexing_of(call, call.input(1), call.input(0).shape[0]);
  g.features = call.input(0).shape[1];
  check(call, g, 1, lowering);
  add_phase(call, g, g.features, BRISK_PHASE(call, embedding), lowering);
}

void lower_embedding_gradient(const Call& call, Lowering& lowering) {
  Indexing g = indexing_of(call, call.input(1), call.output(0).shape[0]);
  g.features = call.output(0).shape[1];
  g.accumulates = call.graph.value(call.node.outputs[0]).place == graph::Place::gradient;
  g.per_unit = std::max<int64_t>(1, 4 * kUnitFloats / g.features);
  lowering.phase(BRISK_PHASE(call, clear_embedding), ceil_divide(g.choices, g.per_unit), g);
  lowering.phase(BRISK_PHASE(call, embedding_gradient), ceil_divide(g.features, 16), g);
}

}  // namespace brisk::backend::cpu
