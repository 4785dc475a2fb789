// Model: a function traced once, its segment table and its store.
#include "brisk/model.h"

#include <algorithm>
#include <set>

#include "core/host_view.h"
#include "core/text.h"
#include "exec/model_use.h"
#include "exec/store.h"
#include "graph/op_table.h"
#include "graph/trace.h"
#include "optim/glob.h"

namespace brisk {
namespace {

/// A function run on symbolic inputs.
struct Traced {
  std::shared_ptr<ModelState> state;        ///< all but segments
  std::vector<graph::ParameterSpec> specs;  ///< of the parameters that the function made, by segment
};

Traced trace(const ModelFunction& function, const Inputs& inputs, const std::string& model, uint64_t seed) {
  if (inputs.fields().empty()) throw Error(ErrorCode::option, "Model", "has no inputs; give at least one field");
  if (function.one_input() && inputs.fields().size() > 1)
    throw Error(ErrorCode::option, "Model",
                cat("a function of one Var with ", inputs.fields().size(), " inputs; take const Vars& and use in[\"",
                    inputs.fields()[0].name, "\"]"));
  auto tracer = std::make_shared<graph::Tracer>(model, seed, true);
  const Vars in = graph::declare_inputs(tracer, inputs.fields());
  Vars out;
  {
    const graph::TraceGuard guard(tracer);
    out = function(in);
  }
  if (out.size() == 0) throw Error(ErrorCode::state, "Model", "the function returned no value");
  std::vector<graph::ValueId> roots;
  for (const auto& [name, value] : out.entries()) roots.push_back(graph::Access::value(value, *tracer));
  tracer->finish(roots);

  auto state = std::make_shared<ModelState>();
  state->name = model;
  state->seed = seed;
  state->inputs = inputs.fields();
  for (size_t i = 0; i < roots.size(); ++i) tracer->graph.outputs.push_back({out.entries()[i].first, roots[i]});
  state->graph = std::move(tracer->graph);
  state->models = tracer->models;
  return {std::move(state), std::move(tracer->specs)};
}

std::shared_ptr<ModelState> trace_model(const ModelFunction& function, const Inputs& inputs,
                                        const ModelOptions& options) {
  if (options.name.empty())
    throw Error(ErrorCode::option, "ModelOptions.name", "is empty; it is part of every random key");
  auto [state, specs] = trace(function, inputs, options.name, options.seed);
  for (graph::ParameterSpec& spec : specs) state->segments.push_back({std::move(spec), 0, 0, false});
  place_segments(*state);
  return state;
}

std::string kind_and_shape(const graph::ParameterSpec& spec) {
  return cat(spec.buffer ? "a buffer " : "", spec.torch_shape);
}

/// The segment that has the name and the shape of each spec. Throws Error [weights] naming the first parameter that
/// only one side has, or that differs; `whose` the specs are.
std::vector<int32_t> match(const ModelState& model, const std::vector<const graph::ParameterSpec*>& specs,
                           const std::string& whose) {
  std::vector<int32_t> matches;
  for (const graph::ParameterSpec* wanted : specs) {
    const auto found = std::find_if(model.segments.begin(), model.segments.end(),
                                    [&](const graph::Segment& segment) { return segment.spec.name == wanted->name; });
    if (found == model.segments.end())
      throw Error(ErrorCode::weights, wanted->name,
                  cat(whose, " has it, model '", model.name, "' has no such parameter"));
    const graph::ParameterSpec& spec = found->spec;
    if (!(spec.shape == wanted->shape) || spec.torch != wanted->torch || spec.buffer != wanted->buffer)
      throw Error(
          ErrorCode::weights, wanted->name,
          cat(whose, " has ", kind_and_shape(*wanted), ", model '", model.name, "' has ", kind_and_shape(spec)));
    matches.push_back(static_cast<int32_t>(found - model.segments.begin()));
  }
  for (size_t i = 0; i < model.segments.size(); ++i)
    if (std::find(matches.begin(), matches.end(), static_cast<int32_t>(i)) == matches.end())
      throw Error(ErrorCode::weights, model.segments[i].spec.name,
                  cat("model '", model.name, "' has it, ", whose, " has not"));
  return matches;
}

/// All but the bytes; a name of its own gives random streams of its own.
std::shared_ptr<ModelState> copy_of(const ModelState& from, const std::string& name) {
  auto state = std::make_shared<ModelState>();
  state->name = name;
  state->seed = from.seed;
  state->inputs = from.inputs;
  state->graph = from.graph;
  state->segments = from.segments;
  state->models = from.models;
  state->freezes = from.freezes;
  state->parameter_floats = from.parameter_floats;
  state->buffer_floats = from.buffer_floats;
  for (graph::Node& node : state->graph.nodes) {
    const auto old = static_cast<int64_t>(graph::stream_of(from.seed, from.name, node.name));
    if (node.op->random && node.attributes.integer("stream") == old)
      node.attributes.set("stream", static_cast<int64_t>(graph::stream_of(from.seed, name, node.name)));
  }
  return state;
}

graph::Segment& find_segment(ModelState& state, std::string_view name) {
  std::vector<std::string> names;
  for (graph::Segment& segment : state.segments) {
    if (segment.spec.name == name) return segment;
    names.push_back(segment.spec.name);
  }
  const std::string near = closest(name, names);
  throw Error(
      ErrorCode::state, cat("parameter \"", name, "\""),
      cat("model '", state.name, "' has no such parameter", near.empty() ? "" : " (did you mean " + near + "?)"));
}

ModelState& held(const std::shared_ptr<ModelState>& state) {
  if (!state) throw Error(ErrorCode::state, "Model", "is empty: it was moved from");
  return *state;
}

/// The model that has the parameters.
const std::shared_ptr<ModelState>& owner(const std::shared_ptr<ModelState>& state) {
  held(state);
  return owner_of(state);
}

void set_frozen(ModelState& state, std::initializer_list<std::string_view> globs, bool frozen, const char* field) {
  std::set<graph::Segment*> chosen;  // all patterns are looked at before anything changes
  for (const std::string_view glob : globs) {
    bool matched = false;
    for (graph::Segment& segment : state.segments) {
      if (!optim::glob_matches(glob, segment.spec.name)) continue;
      chosen.insert(&segment);
      matched = true;
    }
    if (!matched)
      throw Error(ErrorCode::option, field, cat("\"", glob, "\" matches no parameter of model '", state.name, "'"));
  }
  for (graph::Segment* segment : chosen) segment->frozen = frozen;
  for (const std::string_view glob : globs) {
    if (glob == "*") state.freezes.clear();
    if (glob != "*" || frozen) state.freezes.emplace_back(glob, frozen);
  }
  ++state.freeze_version;
}

}  // namespace

Model::Model(ModelFunction function, Shape input, ModelOptions options)
    : Model(std::move(function), Inputs({Field{"input", input, DType::f32}}), std::move(options)) {}
Model::Model(ModelFunction function, Inputs inputs, ModelOptions options)
    : state_(trace_model(function, inputs, options)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Vars Model::operator()(const Vars& inputs) const {
  held(state_);
  return graph::inline_model(graph::Tracer::current(), state_, inputs);
}

Model Model::clone(std::string_view name) const {
  const ModelState& seen = held(state_);
  const exec::Models original = {owner_of(state_)};
  const std::string called(name.empty() ? std::string_view(seen.name) : name);
  const std::shared_ptr<ModelState> weights = copy_of(*original[0], called);
  {
    const exec::CopyUse use(original);
    weights->store = std::make_shared<exec::Store>(*weights, exec::store_of(*original[0]));
  }
  if (!seen.weights) return Model(weights);
  std::shared_ptr<ModelState> view = copy_of(seen, called);
  view->weights = weights;
  std::replace(view->models.begin(), view->models.end(), original[0], weights);
  return Model(std::move(view));
}

void Model::copy_weights_from(const Model& other, const CopyWeightsOptions& options) {
  if (!(options.blend >= 0 && options.blend <= 1))
    throw Error(ErrorCode::option, cat("CopyWeightsOptions.blend = ", options.blend), "must be from 0 to 1");
  const std::shared_ptr<ModelState>&target = owner(state_), &source = owner(other.state_);
  const auto blend = static_cast<float>(options.blend);
  if (target == source || blend == 0) return;
  std::vector<const graph::ParameterSpec*> specs;
  for (const graph::Segment& segment : source->segments) specs.push_back(&segment.spec);
  const std::vector<int32_t> matches = match(*target, specs, cat("model '", source->name, "'"));
  const exec::Models both = {target, source};
  const exec::StepUse use(both);
  for (size_t i = 0; i < matches.size(); ++i) {
    const float* from = exec::store_of(*source).read(source->segments[i]);
    const graph::Segment& segment = target->segments[static_cast<size_t>(matches[i])];
    float* to = exec::store_of(*target).write(segment);
    if (blend == 1)
      std::copy_n(from, segment.count, to);
    else
      for (int64_t k = 0; k < segment.count; ++k) to[k] += blend * (from[k] - to[k]);
  }
}

Model Model::with_inputs(ModelFunction function, Shape input) const {
  return with_inputs(std::move(function), Inputs({Field{"input", input, DType::f32}}));
}

// The new graph refers to the parameters as those of a model that it calls: whatever trains, freezes or copies them
// finds the one that has them.
Model Model::with_inputs(ModelFunction function, Inputs inputs) const {
  const std::shared_ptr<ModelState>& base = owner(state_);
  const auto [state, specs] = trace(function, inputs, base->name, base->seed);
  std::vector<const graph::ParameterSpec*> made;
  for (const graph::ParameterSpec& spec : specs) made.push_back(&spec);
  const std::vector<int32_t> matches = match(*base, made, "the function with these inputs");
  const auto called = static_cast<int32_t>(state->models.size());
  for (graph::Node& node : state->graph.nodes)
    if (node.store == 0) node.store = called;
  for (graph::ParameterRef& ref : state->graph.parameters) {
    if (ref.store != 0) continue;
    ref.store = called;
    ref.segment = matches[static_cast<size_t>(ref.segment)];
  }
  state->models.push_back(base);
  state->weights = base;
  return Model(state);
}

Var Model::operator()(Var input) const {
  if (held(state_).inputs.size() != 1)
    throw Error(ErrorCode::data, cat("model '", held(state_).name, "'"),
                cat("has ", held(state_).inputs.size(), " inputs; call it with Vars"));
  const Vars out = (*this)(Vars{{held(state_).inputs[0].name, input}});
  if (out.size() != 1)
    throw Error(ErrorCode::data, cat("model '", held(state_).name, "'"),
                cat("has ", out.size(), " outputs; call it with Vars"));
  return out.entries()[0].second;
}

const std::string& Model::name() const { return held(state_).name; }
std::vector<Field> Model::inputs() const { return held(state_).inputs; }

std::vector<Parameter> Model::parameters() const {
  std::vector<Parameter> out;
  for (const graph::Segment& s : owner(state_)->segments)
    out.push_back({s.spec.name, s.spec.torch_shape, s.frozen, s.spec.buffer});
  return out;
}

Tensor Model::parameter(std::string_view name) const {
  ModelState& model = *owner(state_);
  const graph::Segment& segment = find_segment(model, name);
  Tensor out(segment.spec.torch_shape);
  exec::to_torch(segment.spec, exec::store_of(model).read(segment), out.data<float>());
  return out;
}

void Model::set_parameter(std::string_view name, const ConstView& value) {
  ModelState& model = *owner(state_);
  const graph::Segment& segment = find_segment(model, name);
  if (!(value.shape() == segment.spec.torch_shape))
    throw Error(ErrorCode::weights, std::string(name),
                cat("given ", value.shape(), ", the model has ", segment.spec.torch_shape));
  check_host(std::string(name), value);
  exec::from_torch(segment.spec, value.data<float>(), exec::store_of(model).write(segment));
}

int64_t Model::parameter_count() const {
  int64_t count = 0;
  for (const graph::Segment& segment : owner(state_)->segments) count += segment.spec.buffer ? 0 : segment.count;
  return count;
}

void Model::freeze(std::initializer_list<std::string_view> globs) {
  set_frozen(*owner(state_), globs, true, "Model::freeze");
}
void Model::unfreeze(std::initializer_list<std::string_view> globs) {
  set_frozen(*owner(state_), globs, false, "Model::unfreeze");
}

}  // namespace brisk
