// Model: a function traced once, its segment table and its store.
#include "brisk/model.h"

#include <algorithm>
#include <set>

#include "core/host_view.h"
#include "core/text.h"
#include "exec/store.h"
#include "graph/trace.h"
#include "optim/glob.h"

namespace brisk {
namespace {

std::shared_ptr<ModelState> trace_model(const ModelFunction& function, const Inputs& inputs,
                                        const ModelOptions& options) {
  if (options.name.empty())
    throw Error(ErrorCode::option, "ModelOptions.name", "is empty; it is part of every random key");
  if (inputs.fields().empty()) throw Error(ErrorCode::option, "Model", "has no inputs; give at least one field");
  if (function.one_input() && inputs.fields().size() > 1)
    throw Error(ErrorCode::option, "Model",
                cat("a function of one Var with ", inputs.fields().size(), " inputs; take const Vars& and use in[\"",
                    inputs.fields()[0].name, "\"]"));
  auto tracer = std::make_shared<graph::Tracer>(options.name, options.seed, true);
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
  state->name = options.name;
  state->seed = options.seed;
  state->inputs = inputs.fields();
  for (size_t i = 0; i < roots.size(); ++i) tracer->graph.outputs.push_back({out.entries()[i].first, roots[i]});
  state->graph = std::move(tracer->graph);
  state->models = tracer->models;
  for (graph::ParameterSpec& spec : tracer->specs) state->segments.push_back({std::move(spec), 0, 0, false});
  place_segments(*state);
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
  for (const graph::Segment& s : held(state_).segments)
    out.push_back({s.spec.name, s.spec.torch_shape, s.frozen, s.spec.buffer});
  return out;
}

Tensor Model::parameter(std::string_view name) const {
  const graph::Segment& segment = find_segment(held(state_), name);
  Tensor out(segment.spec.torch_shape);
  exec::to_torch(segment.spec, exec::store_of(held(state_)).data(segment), out.data<float>());
  return out;
}

void Model::set_parameter(std::string_view name, const ConstView& value) {
  const graph::Segment& segment = find_segment(held(state_), name);
  if (!(value.shape() == segment.spec.torch_shape))
    throw Error(ErrorCode::weights, std::string(name),
                cat("given ", value.shape(), ", the model has ", segment.spec.torch_shape));
  check_host(std::string(name), value);
  exec::from_torch(segment.spec, value.data<float>(), exec::store_of(held(state_)).data(segment));
}

int64_t Model::parameter_count() const {
  int64_t count = 0;
  for (const graph::Segment& segment : held(state_).segments) count += segment.spec.buffer ? 0 : segment.count;
  return count;
}

void Model::freeze(std::initializer_list<std::string_view> globs) {
  set_frozen(held(state_), globs, true, "Model::freeze");
}
void Model::unfreeze(std::initializer_list<std::string_view> globs) {
  set_frozen(held(state_), globs, false, "Model::unfreeze");
}

}  // namespace brisk
