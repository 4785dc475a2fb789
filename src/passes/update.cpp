// update: appends what closes a micro-batch (running statistics) and a window (one walk of the optimizer over all
// trained parameters, gated by the finiteness of their gradients). With a loss scale a gradient may turn out not finite
// at any time: running statistics are then staged until the update counts. Where the host learns of that late, the plan
// itself chooses the scalars of an update, from its own counters.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "passes/common.h"

namespace brisk::passes {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::Place;
using graph::Stage;
using graph::ValueId;

namespace {

ValueId find_value(Graph& graph, Place place, int32_t slot) {
  for (size_t i = 0; i < graph.values.size(); ++i)
    if (graph.values[i].place == place && graph.values[i].slot == slot && graph.values[i].producer < 0)
      return static_cast<ValueId>(i);
  return graph.add_value({DType::f32, 0, graph.parameters[static_cast<size_t>(slot)].shape}, place, slot);
}

/// Whether running statistics of a batch_norm move: not those of a model that the step does not update.
bool commits(const Graph& graph, const Node& node) {
  const graph::Value& weight = graph.value(node.inputs[1]);
  return weight.place != Place::parameter || graph.parameters[static_cast<size_t>(weight.slot)].trainable;
}

/// A layer that is called twice commits twice, one after the other. Returns what is staged.
std::vector<ValueId> commit_statistics(Graph& graph, bool staged) {
  const size_t count = graph.nodes.size();
  std::map<int32_t, ValueId> latest;  // by slot
  for (size_t i = 0; i < count; ++i) {
    const Node node = graph.nodes[i];
    if (!is(node, "batch_norm") || !commits(graph, node)) continue;
    std::vector<ValueId> inputs = {node.outputs[1], node.outputs[3]};
    const std::array<int32_t, 2> slots = {graph.value(node.inputs[3]).slot, graph.value(node.inputs[4]).slot};
    const bool chained = latest.count(slots[0]) == 1;
    for (size_t k = 0; k < 2; ++k) inputs.push_back(chained && !staged ? latest[slots[k]] : node.inputs[k + 3]);
    for (size_t k = 0; staged && k < 2; ++k)
      inputs.push_back(chained ? latest[slots[k]] : find_value(graph, Place::staged, slots[k]));
    const int32_t made = graph.add_node(
        "batch_norm_commit", inputs, {{"chained", chained && staged}, {"momentum", node.attributes.real("momentum")}},
        node.name, node.where, Stage::commit);
    for (size_t k = 0; k < 2; ++k) latest[slots[k]] = node_at(graph, made).outputs[k];
  }
  std::vector<ValueId> values;
  for (const auto& [slot, value] : latest) values.push_back(value);
  return values;
}

ParameterRule rule_of(const std::vector<ParameterRule>& rules, int32_t slot) {
  return static_cast<size_t>(slot) < rules.size() ? rules[static_cast<size_t>(slot)] : ParameterRule{};
}

bool is_adam(const PlanRequest& request) { return request.optimizer.kind == Optimizer::Kind::adam; }
bool asynchronous(const PlanRequest& request) { return request.target && request.target->asynchronous(); }
bool counts_updates(const PlanRequest& request) { return scales_loss(request) || asynchronous(request); }

/// Scalars of a walk that count its cohort's updates.
std::vector<std::string> cohort_scalars(const PlanRequest& request, int64_t started) {
  if (!is_adam(request)) return {cohort_scalar("first", started)};
  return {cohort_scalar("bias1", started), cohort_scalar("bias2", started)};
}

/// Trained parameters (their gradients) by the update that they have been trained since.
using Cohorts = std::map<int64_t, std::vector<ValueId>>;

/// What walks read beside the parameters.
struct WalkInputs {
  std::map<std::string, ValueId> scalars;
  ValueId stats = kNoValue;
};

/// The scalars of all walks: the host's, or those that follow the updates as the plan selects them.
std::map<std::string, ValueId> walk_scalars(Graph& graph, const PlanRequest& request, const Cohorts& cohorts) {
  std::vector<std::string> names = {"rate"};
  for (const auto& [started, members] : cohorts)
    for (const std::string& name : cohort_scalars(request, started)) names.push_back(name);
  std::map<std::string, ValueId> values;
  std::vector<int64_t> slots;
  for (const std::string& name : names) slots.push_back(graph.add_scalar(name));
  if (asynchronous(request)) {
    const int32_t made = graph.add_node("select_scalars", {state_value(graph, 1)}, {{"slots", slots}}, "select_scalars",
                                        {}, Stage::update);
    for (size_t i = 0; i < names.size(); ++i) values[names[i]] = node_at(graph, made).outputs[i];
  } else {
    for (size_t i = 0; i < names.size(); ++i) values[names[i]] = graph.scalar_value(static_cast<int32_t>(slots[i]));
  }
  values["ratio"] = graph.scalar_value(graph.add_scalar("ratio"));
  return values;
}

/// One walk over parameters that have been trained since the same update.
void add_walk(Graph& graph, const PlanRequest& request, const std::vector<ValueId>& gradients, int64_t started,
              const WalkInputs& given) {
  const Optimizer& optimizer = request.optimizer;
  const bool adam = is_adam(request);
  std::vector<ValueId> inputs = {given.scalars.at("rate"), given.scalars.at("ratio")};
  for (const std::string& name : cohort_scalars(request, started)) inputs.push_back(given.scalars.at(name));
  inputs.push_back(given.stats);
  std::vector<double> decay, scale;
  for (const ValueId gradient : gradients) {
    const int32_t slot = graph.value(gradient).slot;
    const ParameterRule rule = rule_of(request.rules, slot);
    inputs.push_back(find_value(graph, Place::parameter, slot));
    inputs.push_back(gradient);
    if (optimizer.moments() >= 1) inputs.push_back(find_value(graph, Place::moment1, slot));
    if (optimizer.moments() == 2) inputs.push_back(find_value(graph, Place::moment2, slot));
    decay.push_back(rule.weight_decay);
    scale.push_back(rule.rate_scale);
  }
  graph::Attributes attributes = {{"weight_decay", decay},
                                  {"rate_scale", scale},
                                  {"shadow", std::string("none")},
                                  {"shadowed", std::vector<int64_t>()}};
  if (adam) {
    attributes.set("beta1", optimizer.beta1);
    attributes.set("beta2", optimizer.beta2);
    attributes.set("epsilon", optimizer.epsilon);
    attributes.set("decoupled", optimizer.decoupled);
  } else {
    attributes.set("momentum", optimizer.beta1);
    attributes.set("dampening", optimizer.dampening);
    attributes.set("nesterov", optimizer.nesterov);
  }
  graph.add_node(adam ? "adam_walk" : "sgd_walk", inputs, attributes, optimizer.name, {}, Stage::update);
}

}  // namespace

std::string cohort_scalar(const std::string& name, int64_t started) {
  return started == 0 ? name : cat(name, ".", started);
}

namespace {

/// The loss scale and the counters behind the update.
void add_scale_update(Graph& graph, const PlanRequest& request, ValueId stats) {
  const LossScale& scale = request.loss_scale;
  graph.add_node("scale_update", {stats, state_value(graph, 0), state_value(graph, 1)},
                 {{"backoff", scale.backoff},
                  {"growth", scale.growth},
                  {"interval", scale.growth_interval},
                  {"maximum", scale.maximum},
                  {"minimum", scale.minimum},
                  {"scaled", scales_loss(request)}},
                 "scale_update", {}, Stage::update);
}

std::vector<ValueId> sorted_gradients(const Graph& graph) {
  std::vector<ValueId> gradients;
  for (const graph::Value& value : graph.values)
    if (value.place == Place::gradient && value.producer >= 0)
      gradients.push_back(static_cast<ValueId>(&value - graph.values.data()));
  std::sort(gradients.begin(), gradients.end(),
            [&](ValueId a, ValueId b) { return graph.value(a).slot < graph.value(b).slot; });
  return gradients;
}

}  // namespace

Graph update(Graph graph, const PlanRequest& request) {
  if (graph.phase != graph::Phase::train) return graph;
  const std::vector<ValueId> gradients = sorted_gradients(graph);
  const bool stages = scales_loss(request) && !gradients.empty();
  const std::vector<ValueId> staged = commit_statistics(graph, stages);
  if (gradients.empty()) return graph;

  Cohorts cohorts;
  for (const ValueId gradient : gradients)
    cohorts[rule_of(request.rules, graph.value(gradient).slot).started].push_back(gradient);
  WalkInputs given;
  given.scalars = walk_scalars(graph, request, cohorts);
  std::vector<ValueId> inputs = {given.scalars.at("ratio")};
  if (scales_loss(request)) inputs.push_back(state_value(graph, 0));
  inputs.insert(inputs.end(), gradients.begin(), gradients.end());
  given.stats =
      graph.emit("gradient_stats", inputs, {{"clip_norm", request.clip_norm}, {"scaled", scales_loss(request)}},
                 "gradient_stats", {}, Stage::update);
  for (const auto& [started, members] : cohorts) add_walk(graph, request, members, started, given);
  if (stages && !staged.empty()) {
    inputs = {given.stats};
    inputs.insert(inputs.end(), staged.begin(), staged.end());
    graph.add_node("commit_staged", inputs, {}, "commit_staged", {}, Stage::update);
  }
  if (counts_updates(request)) add_scale_update(graph, request, given.stats);
  return graph;
}

namespace {

bool is_walk(const Node& node) { return is(node, "sgd_walk") || is(node, "adam_walk"); }

/// Where a walk's operands of each parameter begin, and how many there are.
struct WalkForm {
  size_t first;
  size_t stride;
};
WalkForm form_of(const Node& node) {
  if (is(node, "adam_walk")) return {5, 4};
  return {4, node.attributes.real("momentum") != 0 ? size_t{3} : size_t{2}};
}

void verify_walk(const Graph& graph, const char* pass, const Node& node, const PlanRequest& request) {
  const std::string at = graph::label(node);
  check(is(node, "adam_walk") == is_adam(request), pass, "optimizer", cat(at, " is not what was asked for"));
  for (const char* list : {"weight_decay", "rate_scale"})
    for (const double value : node.attributes.reals(list))
      check(std::isfinite(value) && value >= 0, pass, "rules", cat(at, " has ", list, " = ", value));
  const auto [first, stride] = form_of(node);
  const int64_t started = rule_of(request.rules, graph.value(node.inputs[first]).slot).started;
  std::vector<std::string> names = {"rate", "ratio"};
  for (const std::string& name : cohort_scalars(request, started)) names.push_back(name);
  for (size_t i = 0; i < names.size(); ++i) {
    const graph::Value& value = graph.value(node.inputs[i]);
    check(value.place == Place::scalar && graph.scalars[static_cast<size_t>(value.slot)] == names[i], pass, "scalars",
          cat(at, " does not read ", names[i], " as its input ", i));
    check((value.producer >= 0) == (asynchronous(request) && names[i] != "ratio"), pass, "scalars",
          cat(at, " reads ", names[i], " from another place than the update's"));
  }
  constexpr Place kPlaces[] = {Place::parameter, Place::gradient, Place::moment1, Place::moment2};
  for (size_t i = first; i < node.inputs.size(); ++i) {
    const graph::Value& value = graph.value(node.inputs[i]);
    const graph::Value& parameter = graph.value(node.inputs[i - (i - first) % stride]);
    check(value.place == kPlaces[(i - first) % stride] && value.slot == parameter.slot, pass, "pairs",
          cat(at, " mixes the operands of two parameters"));
    check(rule_of(request.rules, value.slot).started == started, pass, "cohort",
          cat(at, " moves parameters that count different updates"));
  }
}

void verify_statistics(const Graph& graph, const char* pass, const Node& node, const PlanRequest& request,
                       const std::set<int32_t>& gradients) {
  std::set<int32_t> read;
  for (size_t i = scales_loss(request) ? 2 : 1; i < node.inputs.size(); ++i)
    read.insert(graph.value(node.inputs[i]).slot);
  check(read == gradients, pass, "guard", "the statistics do not cover all gradients");
  check(node.attributes.real("clip_norm") == request.clip_norm, pass, "clip",
        cat(graph::label(node), " clips at another norm"));
  check(node.attributes.flag("scaled") == scales_loss(request) &&
            (!scales_loss(request) || graph.value(node.inputs[1]).place == Place::state),
        pass, "scale", cat(graph::label(node), " and the recipe differ in a scale"));
}

void verify_scale(const char* pass, const Node& node, const PlanRequest& request) {
  const LossScale& scale = request.loss_scale;
  const graph::Attributes& a = node.attributes;
  check(a.flag("scaled") == scales_loss(request) && a.real("backoff") == scale.backoff &&
            a.real("growth") == scale.growth && a.integer("interval") == scale.growth_interval &&
            a.real("maximum") == scale.maximum && a.real("minimum") == scale.minimum,
        pass, "scale", cat(graph::label(node), " follows other rules than were asked for"));
}

bool of_update(const Node& node) {
  return is_walk(node) || is(node, "gradient_stats") || is(node, "commit_staged") || is(node, "scale_update") ||
         is(node, "select_scalars");
}

/// What there must be once or not at all, and where.
void verify_counts(const Graph& graph, const char* pass, const PlanRequest& request, bool updates, bool stages) {
  std::map<std::string_view, int> found;
  for (const Node& node : graph.nodes) ++found[node.op->name];
  const auto want = [&](const char* op, bool wanted, const char* rule) {
    check(found[op] == (wanted ? 1 : 0), pass, rule, cat("there are ", found[op], " of ", op));
  };
  want("select_scalars", updates && asynchronous(request), "scalars");
  want("scale_update", updates && counts_updates(request), "scale");
  want("commit_staged", stages, "statistics");
  check(found["scale_update"] == 0 || is(graph.nodes.back(), "scale_update"), pass, "scale",
        "the scale changes before the update is through");
}

}  // namespace

void verify_update(const Graph& graph, const PlanRequest& request) {
  const char* pass = "update";
  verify_structure(graph, pass);
  std::set<int32_t> gradients, updated, committed, staged;
  int walks = 0, stats = 0;
  for (const Node& node : graph.nodes) {
    const std::string at = graph::label(node);
    const bool walk = is_walk(node), commit = is(node, "batch_norm_commit"), update = of_update(node);
    const Stage stage = update ? Stage::update : commit ? Stage::commit : node.stage;
    check(node.stage == stage && (update || commit || node.stage <= Stage::backward), pass, "stage",
          cat(at, " is of the ", graph::name(node.stage), " stage"));
    walks += walk;
    if (walk) {
      check(stats == 1, pass, "guard", cat(at, " is not preceded by the gradients' statistics"));
      verify_walk(graph, pass, node, request);
    }
    if (is(node, "gradient_stats")) {
      ++stats;
      verify_statistics(graph, pass, node, request, gradients);
    }
    if (is(node, "scale_update")) verify_scale(pass, node, request);
    if (commit)
      check(node.attributes.flag("chained") == (staged.count(graph.value(node.inputs[2]).slot) == 1), pass, "chained",
            cat(at, " does not follow what was staged before it"));
    for (const ValueId id : node.outputs) {
      const graph::Value& value = graph.value(id);
      if (value.place == Place::gradient) gradients.insert(value.slot);
      if (value.place == Place::parameter) {
        check(walk, pass, "writer", cat(at, " writes a parameter"));
        check(updated.insert(value.slot).second, pass, "once",
              cat(graph.parameters[static_cast<size_t>(value.slot)].name, " is updated twice"));
      }
      if (value.place == Place::staged) staged.insert(value.slot);
      if (value.place == Place::buffer) committed.insert(value.slot);
    }
  }
  verify_types(graph, pass);
  if (graph.phase != graph::Phase::train) return;
  std::set<int64_t> starts;
  for (const int32_t slot : gradients) starts.insert(rule_of(request.rules, slot).started);
  check(walks == static_cast<int>(starts.size()), pass, "walk", cat("there are ", walks, " optimizer walks"));
  check(updated == gradients, pass, "complete", "the walk does not update exactly the parameters that have a gradient");
  bool normalises = false;
  for (const Node& node : graph.nodes) {
    if (!is(node, "batch_norm") || !commits(graph, node)) continue;
    normalises = true;
    check(committed.count(graph.value(node.inputs[3]).slot) == 1, pass, "statistics",
          cat(graph::label(node), " does not commit its running statistics"));
  }
  const bool stages = normalises && scales_loss(request) && !gradients.empty();
  check(stages == !staged.empty(), pass, "statistics",
        "running statistics are staged with a loss scale, and only then");
  verify_counts(graph, pass, request, !gradients.empty(), stages);
}

}  // namespace brisk::passes
