// Operations that only passes emit: bringing values in and out, seeds of gradients, statistics and the optimizer's
// walks.
#include <algorithm>
#include <cmath>

#include "graph/ops/rules.h"

namespace brisk::graph {
namespace {

using Home = std::pair<Place, int32_t>;

template <Place kPlace>
Home in_slot(const Graph&, const Node& node, int) {
  return {kPlace, static_cast<int32_t>(node.attributes.integer("slot"))};
}

void check_slot(const InferContext& c) { integer_in(c, "slot", 0, INT32_MAX); }

Types infer_load(const InferContext& c) { return {c.input(0)}; }

void derive_load(Derivation& d) {
  if (d.wants(0)) d.set(0, d.output_gradient());
}

Types infer_store(const InferContext& c) {
  check_slot(c);
  return {c.input(0)};
}

Types infer_store_gradient(const InferContext& c) {
  check_slot(c);
  want_plain(c, 0, "gradient", "without a batch");
  return {c.input(0)};
}

Types infer_total(const InferContext& c) {
  check_slot(c);
  want_batched(c, 0, "term", "[N]", 0);
  if (c.count() == 2) want_batched(c, 1, "row weight", "[N]", 0);
  return {plain({2})};
}

void want_scale(const InferContext& c, int i) { want_plain(c, i, "loss scale", "a scalar", 0); }

Types infer_seed_rows(const InferContext& c) {
  want_plain(c, 0, "seed", "a scalar", 0);
  if (c.count() == 3) want_scale(c, 2);
  return {want_batched(c, 1, "term", "[N]", 0)};
}

Types infer_seed_count(const InferContext& c) {
  want_batched(c, 0, "row weight", "[N]", 0);
  return {plain({})};
}

// Norm of the gradient (corrected by the ratio, unscaled), number of elements that are not finite, factor (of the
// clipping, divided by the loss scale), index of the first bad gradient (-1: none).
ValueType stats_type() { return plain({4}); }
// backend::Counter.
ValueType counters_type() { return plain({4}, DType::i64); }

int first_gradient(const Attributes& attributes) { return attributes.flag("scaled") ? 2 : 1; }

Types infer_gradient_stats(const InferContext& c) {
  want_plain(c, 0, "ratio", "a scalar", 0);
  const double clip = c.attributes().real("clip_norm");
  if (!(clip >= 0)) c.fail(cat("clip_norm = ", clip, ": must be 0 (off) or more"));
  const int first = first_gradient(c.attributes());
  if (first == 2) want_scale(c, 1);
  c.require(c.count() > first, "there is no gradient");
  for (int i = first; i < c.count(); ++i) want_plain(c, i, "gradient", "without a batch");
  return {stats_type()};
}

// (stats, scale, counters) -> (scale, counters) behind an update; not `scaled`: only counts.
Types infer_scale_update(const InferContext& c) {
  real_in(c, "backoff", 0, 1);
  real_in(c, "growth", 1, HUGE_VAL);
  integer_in(c, "interval", 1, INT64_MAX);
  real_in(c, "maximum", real_in(c, "minimum", 0, HUGE_VAL), HUGE_VAL);
  want_type(c, 0, "stats", stats_type());
  want_scale(c, 1);
  want_type(c, 2, "counters", counters_type());
  return {c.input(1), c.input(2)};
}

// (counters) -> the scalars of the update that the counters have come to.
Types infer_select_scalars(const InferContext& c) {
  want_type(c, 0, "counters", counters_type());
  for (const int64_t slot : c.attributes().integers("slots"))
    if (slot < 0 || slot > INT32_MAX) c.fail(cat("slots has ", slot));
  return Types(c.attributes().integers("slots").size(), plain({}));
}

// A walk's inputs: scalars, `stats` of gradient_stats, then for each parameter the parameter, its gradient and its
// moments.
struct Walk {
  int scalars = 0;
  int moments = 0;
  int stride() const { return 2 + moments; }
  int first() const { return scalars + 1; }
  int parameters(const Node& node) const { return (static_cast<int>(node.inputs.size()) - first()) / stride(); }
};

// Type of the shadows of a walk's parameters.
DType shadow_type(const InferContext& c, int parameters) {
  const std::string& text = c.attributes().text("shadow");
  const std::vector<int64_t>& shadowed = c.attributes().integers("shadowed");
  c.require(text == "none" ? shadowed.empty() : text == "f16" || text == "bf16",
            cat("shadow = ", text, " with ", shadowed.size(), " of them: must be f16, bf16, or none of none"));
  for (const int64_t index : shadowed)
    if (index < 0 || index >= parameters) c.fail(cat("shadowed has ", index, " of ", parameters, " parameters"));
  return text == "f16" ? DType::f16 : DType::bf16;
}

Walk sgd_walk(const Attributes& attributes) { return {3, attributes.real("momentum") != 0 ? 1 : 0}; }
Walk adam_walk(const Attributes&) { return {4, 2}; }

// Outputs: all new parameters, then all new first moments, all new second moments, and the shadows of those parameters
// that have one.
Types infer_walk(const InferContext& c, const Walk& walk) {
  for (int i = 0; i < walk.scalars; ++i) want_plain(c, i, "rate, ratio and the like", "a scalar", 0);
  want_type(c, walk.scalars, "stats", stats_type());
  const int rest = c.count() - walk.first();
  if (rest <= 0 || rest % walk.stride() != 0) {
    c.fail(cat(rest, " inputs after the statistics: must be ", walk.stride(), " for each parameter"));
  }
  const int count = rest / walk.stride();
  for (const char* name : {"rate_scale", "weight_decay"}) {
    const size_t have = c.attributes().reals(name).size();
    if (static_cast<int>(have) != count) c.fail(cat(name, " has ", have, " numbers for ", count, " parameters"));
  }
  const char* const roles[] = {"parameter", "gradient", "first moment", "second moment"};
  Types types;
  for (int p = 0; p < count; ++p) {
    const int at = walk.first() + p * walk.stride();
    const ValueType type = want_plain(c, at, "parameter", "without a batch");
    for (int k = 1; k < walk.stride(); ++k) want_type(c, at + k, roles[k], type);
    types.push_back(type);
  }
  const Types parameters = types;
  for (int k = 0; k < walk.moments; ++k) types.insert(types.end(), parameters.begin(), parameters.end());
  const DType shadow = shadow_type(c, count);
  for (const int64_t index : c.attributes().integers("shadowed"))
    types.push_back(plain(parameters[static_cast<size_t>(index)].shape, shadow));
  return types;
}

// An output lives where the input that it replaces does; a shadow beside its parameter.
Home walk_place(const Graph& graph, const Node& node, const Walk& walk, int output) {
  const int count = walk.parameters(node);
  const int kind = output / count;  // 0: parameter, then the moments, which stand behind the gradient
  if (kind > walk.moments) {
    const int64_t of = node.attributes.integers("shadowed")[static_cast<size_t>(output - (1 + walk.moments) * count)];
    const auto parameter = static_cast<size_t>(walk.first() + static_cast<int>(of) * walk.stride());
    return {Place::shadow, graph.value(node.inputs[parameter]).slot};
  }
  const int at = walk.first() + output % count * walk.stride() + (kind == 0 ? 0 : kind + 1);
  const Value& replaced = graph.value(node.inputs[static_cast<size_t>(at)]);
  constexpr Place kPlaces[] = {Place::parameter, Place::moment1, Place::moment2};
  return {kPlaces[kind], replaced.slot};
}

Types infer_commit(const InferContext& c) {
  real_in(c, "momentum", 0, 1);
  const ValueType mean = want_plain(c, 0, "batch mean", "[channels]", 1);
  c.require(c.count() == 4 || c.count() == 6, cat("has ", c.count(), " inputs: must be 4, or 6 that stage"));
  c.require(c.count() == 6 || !c.attributes().flag("chained"), "only what is staged is chained");
  const char* const roles[] = {"batch mean",       "batch variance", "running mean",
                               "running variance", "staged mean",    "staged variance"};
  for (int i = 1; i < c.count(); ++i) want_type(c, i, roles[i], mean);
  return {mean, mean};
}

// A new value of the running statistics: of the buffers themselves, or staged beside them.
Home commit_place(const Graph& graph, const Node& node, int output) {
  const Value& running = graph.value(node.inputs[static_cast<size_t>(output) + 2]);
  return {node.inputs.size() == 6 ? Place::staged : Place::buffer, running.slot};
}

Types infer_commit_staged(const InferContext& c) {
  want_type(c, 0, "stats", stats_type());
  Types types;
  for (int i = 1; i < c.count(); ++i) types.push_back(want_plain(c, i, "staged buffer", "without a batch"));
  return types;
}

template <int kOperations>
double per_parameter_flops(const Graph& graph, const Node& node) {
  double elements = 0;
  for (const ValueId id : node.outputs) {
    if (graph.value(id).place == Place::parameter) elements += static_cast<double>(graph.type(id).elements());
  }
  return kOperations * elements;
}

// A sum of squares: a multiply-add and a test an element.
double stats_flops(const Graph& graph, const Node& node) {
  double elements = 0;
  for (auto i = static_cast<size_t>(first_gradient(node.attributes)); i < node.inputs.size(); ++i)
    elements += static_cast<double>(graph.type(node.inputs[i]).elements());
  return 3 * elements;
}

std::vector<OpInfo> movers() {
  return {
      {.name = "load", .infer = infer_load, .derive = derive_load, .flops = no_flops},
      {.name = "store",
       .attributes = {{"slot", Kind::integer}},
       .infer = infer_store,
       .flops = no_flops,
       .place = in_slot<Place::output>},
      {.name = "store_gradient",
       .attributes = {{"slot", Kind::integer}},
       .infer = infer_store_gradient,
       .place = in_slot<Place::gradient>},
      {.name = "total",
       .maximum_inputs = 2,
       .attributes = {{"slot", Kind::integer}},
       .infer = infer_total,
       .flops = flops_per_input<2>,
       .place = in_slot<Place::totals>},
      {.name = "seed_rows", .minimum_inputs = 2, .maximum_inputs = 3, .infer = infer_seed_rows, .flops = no_flops},
      {.name = "seed_count",
       .attributes = {{"factor", Kind::real}},
       .infer = infer_seed_count,
       .flops = flops_per_input<1>},
  };
}

std::vector<OpInfo> updates() {
  return {
      {.name = "gradient_stats",
       .minimum_inputs = 2,
       .maximum_inputs = -1,
       .attributes = {{"clip_norm", Kind::real}, {"scaled", Kind::flag}},
       .infer = infer_gradient_stats,
       .flops = stats_flops},
      {.name = "sgd_walk",
       .minimum_inputs = 6,
       .maximum_inputs = -1,
       .outputs = -1,
       .attributes = {{"dampening", Kind::real},
                      {"momentum", Kind::real},
                      {"nesterov", Kind::flag},
                      {"rate_scale", Kind::reals},
                      {"shadow", Kind::text},
                      {"shadowed", Kind::integers},
                      {"weight_decay", Kind::reals}},
       .infer = [](const InferContext& c) { return infer_walk(c, sgd_walk(c.attributes())); },
       .flops = per_parameter_flops<8>,
       .place = [](const Graph& g, const Node& n, int i) { return walk_place(g, n, sgd_walk(n.attributes), i); }},
      {.name = "adam_walk",
       .minimum_inputs = 9,
       .maximum_inputs = -1,
       .outputs = -1,
       .attributes = {{"beta1", Kind::real},
                      {"beta2", Kind::real},
                      {"decoupled", Kind::flag},
                      {"epsilon", Kind::real},
                      {"rate_scale", Kind::reals},
                      {"shadow", Kind::text},
                      {"shadowed", Kind::integers},
                      {"weight_decay", Kind::reals}},
       .infer = [](const InferContext& c) { return infer_walk(c, adam_walk(c.attributes())); },
       .flops = per_parameter_flops<16>,
       .place = [](const Graph& g, const Node& n, int i) { return walk_place(g, n, adam_walk(n.attributes), i); }},
      {.name = "batch_norm_commit",
       .minimum_inputs = 4,
       .maximum_inputs = 6,
       .outputs = 2,
       .attributes = {{"chained", Kind::flag}, {"momentum", Kind::real}},
       .infer = infer_commit,
       .place = commit_place},
      {.name = "commit_staged",
       .minimum_inputs = 2,
       .maximum_inputs = -1,
       .outputs = -1,
       .infer = infer_commit_staged,
       .flops = no_flops,
       .place = [](const Graph& g, const Node& n,
                   int i) { return Home(Place::buffer, g.value(n.inputs[static_cast<size_t>(i) + 1]).slot); }},
      {.name = "scale_update",
       .minimum_inputs = 3,
       .maximum_inputs = 3,
       .outputs = 2,
       .attributes = {{"backoff", Kind::real},
                      {"growth", Kind::real},
                      {"interval", Kind::integer},
                      {"maximum", Kind::real},
                      {"minimum", Kind::real},
                      {"scaled", Kind::flag}},
       .infer = infer_scale_update,
       .flops = no_flops,
       .place = [](const Graph&, const Node&, int i) { return Home(Place::state, i); }},
      {.name = "select_scalars",
       .outputs = -1,
       .attributes = {{"slots", Kind::integers}},
       .infer = infer_select_scalars,
       .flops = no_flops,
       .place =
           [](const Graph&, const Node& n, int i) {
             return Home(Place::scalar, static_cast<int32_t>(n.attributes.integers("slots")[static_cast<size_t>(i)]));
           }},
  };
}

}  // namespace

std::span<const OpInfo> plan_ops() {
  static const std::vector<OpInfo> ops = [] {
    std::vector<OpInfo> all = movers();
    const std::vector<OpInfo> rest = updates();
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
  }();
  return ops;
}

}  // namespace brisk::graph
