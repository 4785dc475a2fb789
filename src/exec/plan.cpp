// Plan: reading what was compiled.
#include "brisk/plan.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <set>

#include "core/text.h"
#include "exec/compiled_plan.h"
#include "graph/op_table.h"

namespace brisk {
namespace exec {

TrainedLayout trained_layout(const graph::Graph& program) {
  constexpr int64_t kFloatsOfAlignment = 16;
  TrainedLayout layout;
  for (const graph::ParameterRef& parameter : program.parameters) {
    layout.offsets.push_back(parameter.trainable ? layout.floats : -1);
    if (parameter.trainable)
      layout.floats += (parameter.shape.count() + kFloatsOfAlignment - 1) / kFloatsOfAlignment * kFloatsOfAlignment;
  }
  return layout;
}

bool SlotLayout::add(const graph::Graph& plan, graph::Place place) {
  constexpr int64_t kAlignment = 64;
  offsets.resize(plan.parameters.size(), -1);
  bool added = false;
  for (const graph::Value& value : plan.values) {
    if (value.place != place || offsets[static_cast<size_t>(value.slot)] >= 0) continue;
    offsets[static_cast<size_t>(value.slot)] = bytes;
    bytes += (value.type.elements() * size_of(value.type.dtype) + kAlignment - 1) / kAlignment * kAlignment;
    added = true;
  }
  return added;
}

bool has_state(const graph::Graph& plan) {
  return std::any_of(plan.values.begin(), plan.values.end(),
                     [](const graph::Value& value) { return value.place == graph::Place::state; });
}

Precision resolve(Precision asked, const backend::Target& target) {
  if (asked != Precision::automatic) return asked;
  const DType type = target.matrix_type();
  return type == DType::bf16 ? Precision::bf16 : type == DType::f16 ? Precision::fp16 : Precision::f32;
}

namespace {

int64_t slot_bytes(const graph::Graph& plan, graph::Place place) {
  SlotLayout layout;
  layout.add(plan, place);
  return layout.bytes;
}

/// Bytes of the values that a plan needs: all of the models that it trains or evaluates, but for predictions a copy of
/// those that it reads.
void add_value_bytes(const graph::Graph& program, const graph::Graph& plan, PlanBytes& bytes) {
  std::vector<bool> read(program.parameters.size(), plan.phase != graph::Phase::predict);
  for (const graph::Node& node : plan.nodes)
    for (const graph::ValueId id : node.inputs) {
      const graph::Value& value = plan.value(id);
      if (value.place == graph::Place::parameter || value.place == graph::Place::buffer)
        read[static_cast<size_t>(value.slot)] = true;
    }
  for (size_t i = 0; i < read.size(); ++i) {
    const graph::ParameterRef& parameter = program.parameters[i];
    const int64_t padded = (parameter.shape.count() + 15) / 16 * 16 * int64_t{sizeof(float)};
    if (read[i]) (parameter.buffer ? bytes.buffers : bytes.parameters) += padded;
  }
}

}  // namespace

std::shared_ptr<const CompiledPlan> compile_plan(PlanSource source) {
  auto plan = std::make_shared<CompiledPlan>();
  source.request.target = source.target.get();
  plan->graph = passes::compile(source.program, source.request);
  PlanBytes& bytes = plan->bytes;
  add_value_bytes(source.program, plan->graph, bytes);
  bytes.activations = plan->graph.arena_bytes;
  bytes.live = plan->graph.live_bytes;
  if (plan->graph.phase != graph::Phase::predict)
    bytes.gradients = trained_layout(source.program).floats * int64_t{sizeof(float)};
  bytes.moments = bytes.gradients * source.request.optimizer.moments();
  bytes.scratch = source.target->scratch_bytes(plan->graph, source.request.samples) * source.threads;
  bytes.library_bound = source.target->library_bound_bytes();
  bytes.shadows = slot_bytes(plan->graph, graph::Place::shadow);
  bytes.staged = slot_bytes(plan->graph, graph::Place::staged);
  bytes.state = has_state(plan->graph) ? kStateBytes : 0;
  bytes.total = bytes.activations + bytes.buffers + bytes.gradients + bytes.moments + bytes.parameters + bytes.scratch +
                bytes.shadows + bytes.staged + bytes.state;
  plan->source = std::move(source);
  plan->source.request.target = plan->source.target.get();
  return plan;
}

}  // namespace exec

Plan::Plan(std::shared_ptr<const exec::CompiledPlan> plan) : plan_(std::move(plan)) {}

PlanBytes Plan::bytes() const { return plan_->bytes; }
Precision Plan::precision() const { return plan_->source.request.precision; }
int64_t Plan::batch() const { return plan_->source.request.samples; }
std::string Plan::target() const { return plan_->source.target->name(); }

namespace {

int64_t stored_bytes(const graph::Graph& graph, graph::ValueId id, int64_t samples) {
  const graph::ValueType& type = graph.type(id);
  return type.elements() * (type.batched() ? samples : 1) * size_of(type.dtype);
}

}  // namespace

std::vector<PlanStep> Plan::steps() const {
  const graph::Graph& graph = plan_->graph;
  const int64_t samples = batch();
  std::vector<PlanStep> steps;
  for (size_t i = 0; i < graph.nodes.size();) {
    size_t end = i + 1;
    while (end < graph.nodes.size() && graph.nodes[end].group >= 0 && graph.nodes[end].group == graph.nodes[i].group)
      ++end;
    PlanStep step;
    bool batched = false;
    for (size_t k = i; k < end; ++k) {
      const graph::Node& node = graph.nodes[k];
      step.op += (k > i ? " + " : "") + graph::label(node);
      double flops = graph::flops(graph, node);
      for (const auto* list : {&node.inputs, &node.outputs})
        for (const graph::ValueId id : *list) batched |= graph.type(id).batched();
      step.flops += batched ? flops * static_cast<double>(samples) : flops;
    }
    const graph::Node& last = graph.nodes[end - 1];
    const bool shared = last.op->view && graph.value(last.outputs[0]).alias != graph::kNoValue;
    std::set<graph::ValueId> operands(last.outputs.begin(), last.outputs.end());
    for (size_t k = i; k < end; ++k)
      for (const graph::ValueId id : graph.nodes[k].inputs) {
        const int32_t from = graph.value(id).producer;
        if (from < static_cast<int32_t>(i) || from >= static_cast<int32_t>(end)) operands.insert(id);
      }
    for (const graph::ValueId id : operands) step.bytes += static_cast<double>(stored_bytes(graph, id, samples));
    step.bytes += 2.0 * static_cast<double>(last.workspace_bytes);
    if (shared) step.bytes = 0;
    step.implementation = last.attributes.has("op") ? cat(last.attributes.object("op").name(), ": user op, not fused")
                                                    : last.implementation;
    step.declined = last.declined;
    step.launches = last.launches;
    step.seconds = last.seconds;
    step.stage = graph::name(last.stage);
    step.shape = last.outputs.empty() ? "" : graph.type(last.outputs[0]).text();
    step.wave = last.wave;
    steps.push_back(std::move(step));
    i = end;
  }
  return steps;
}

double Plan::seconds() const {
  const std::vector<graph::Node>& nodes = plan_->graph.nodes;
  return std::accumulate(nodes.begin(), nodes.end(), 0.0,
                         [](double sum, const graph::Node& node) { return sum + node.seconds; });
}

int64_t Plan::launches() const {
  const std::vector<graph::Node>& nodes = plan_->graph.nodes;
  return std::accumulate(nodes.begin(), nodes.end(), int64_t{0},
                         [](int64_t sum, const graph::Node& node) { return sum + node.launches; });
}

namespace {

/// " 12.3 us", or "" where the target has no model.
std::string microseconds(double seconds) {
  if (seconds <= 0) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f us", seconds * 1e6);
  return text;
}

}  // namespace

std::string Plan::explain() const {
  const PlanBytes bytes = plan_->bytes;
  std::string text =
      cat("plan: ", graph::name(plan_->graph.phase), ", ", batch(), " rows, ", plan_->source.target->name(), ", ",
          plan_->source.threads, " threads, ", name(precision()), "\n");
  for (const PlanStep& step : steps()) {
    text +=
        cat("  ", step.wave, "  ", step.stage, "  ", step.op, "  ", step.shape, "  ", step.implementation, "  ",
            grouped(static_cast<int64_t>(step.bytes)), " bytes  ", grouped(static_cast<int64_t>(step.flops)), " FLOPs");
    if (step.launches > 0) text += cat("  ", step.launches, " launches  ", microseconds(step.seconds));
    text += "\n";
    for (const std::string& reason : step.declined) text += cat("       declined: ", reason, "\n");
  }
  const auto line = [&](const char* what, int64_t count) { text += cat("  ", what, " ", grouped(count), " bytes\n"); };
  line("parameters", bytes.parameters);
  line("buffers", bytes.buffers);
  line("gradients", bytes.gradients);
  line("moments", bytes.moments);
  line("activations", bytes.activations);
  line("  largest live set", bytes.live);
  line("scratch", bytes.scratch);
  line("total", bytes.total);
  if (launches() > 0) text += cat("  modelled ", microseconds(seconds()), " in ", launches(), " launches\n");
  return text;
}

std::string Plan::dump(const std::string& pass) const {
  if (pass.empty()) return graph::print(plan_->graph);
  std::string text, names;
  for (const passes::Pass& known : passes::all()) names += (names.empty() ? "" : ", ") + std::string(known.name);
  passes::compile(plan_->source.program, plan_->source.request, [&](const char* name, const graph::Graph& graph) {
    if (pass == name) text = graph::print(graph);
  });
  if (text.empty()) throw Error(ErrorCode::option, cat("pass \"", pass, "\""), cat("is none of ", names));
  return text;
}

std::string Plan::dot() const { return graph::dot(plan_->graph); }

}  // namespace brisk
