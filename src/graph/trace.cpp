#include "graph/trace.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/philox.h"
#include "core/text.h"
#include "graph/model_state.h"
#include "graph/op_table.h"

namespace brisk::graph {
namespace {

thread_local std::shared_ptr<Tracer> current_tracer;

std::string join(const std::string& scope, std::string_view leaf) {
  return scope.empty() ? std::string(leaf) : scope + "." + std::string(leaf);
}

/// Nodes that the roots need, in post-order: operands before their users, from left to right.
std::vector<int32_t> post_order(const Graph& graph, const std::vector<ValueId>& roots) {
  std::vector<int32_t> order;
  std::vector<uint8_t> state(graph.nodes.size(), 0);  // 0 new, 1 open, 2 done
  std::vector<std::pair<int32_t, size_t>> stack;
  const auto open = [&](ValueId id) {
    const int32_t producer = graph.value(id).producer;
    if (producer >= 0 && state[static_cast<size_t>(producer)] == 0) {
      state[static_cast<size_t>(producer)] = 1;
      stack.emplace_back(producer, 0);
    }
  };
  const auto walk = [&](ValueId root) {
    open(root);
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      const auto& inputs = graph.nodes[static_cast<size_t>(node)].inputs;
      if (next < inputs.size()) {
        open(inputs[next++]);
      } else {
        state[static_cast<size_t>(node)] = 2;
        order.push_back(node);
        stack.pop_back();
      }
    }
  };
  for (const Node& node : graph.nodes)  // inputs keep the order in which they were declared
    if (node.op->name == "load") walk(node.outputs[0]);
  for (const ValueId root : roots) walk(root);
  return order;
}

}  // namespace

uint64_t stream_of(uint64_t seed, const std::string& model, const std::string& name) {
  return mix(seed, hash_name(model + "/" + name));
}

Tracer::Tracer(std::string model_name, uint64_t seed_value, bool owns)
    : model(std::move(model_name)), seed(seed_value), may_own(owns) {
  if (owns) models.push_back(nullptr);
}

std::shared_ptr<Tracer> Tracer::current() {
  if (!current_tracer)
    throw Error(ErrorCode::state, "", "this may only be called inside a model function or an objective");
  return current_tracer;
}

void Tracer::push_scope(std::string_view name, Naming naming) {
  if (name.empty() || name.find('/') != std::string_view::npos)
    throw Error(ErrorCode::option, "Scope.name", "\"" + std::string(name) + "\": must not be empty or contain '/'");
  scopes_.push_back({std::string(name), naming});
}

void Tracer::pop_scope() { scopes_.pop_back(); }

std::string Tracer::scope() const {
  std::string path;
  for (const OpenScope& open : scopes_) path = join(path, open.name);
  return path;
}

Naming Tracer::naming() const { return scopes_.empty() ? Naming::kind : scopes_.back().naming; }

int32_t Tracer::add_layer(std::string_view kind, std::string_view explicit_name, Where where, bool counts) {
  LayerRecord layer;
  layer.scope = scope();
  layer.naming = naming();
  layer.kind = kind;
  layer.explicit_name = explicit_name;
  layer.where = where;
  layer.counts = counts;
  int same = 1;
  for (const LayerRecord& other : layers) same += other.kind == layer.kind && other.scope == layer.scope;
  layer.name = join(layer.scope, explicit_name.empty() ? layer.kind + std::to_string(same) : layer.explicit_name);
  const auto index = static_cast<int32_t>(layers.size());
  if (recording_ >= 0) shared_[static_cast<size_t>(recording_)].layers.push_back(index);
  if (replaying_ >= 0) {
    const SharedBlock& block = shared_[static_cast<size_t>(replaying_)];
    if (layer_cursor_ < block.layers.size()) {
      layer.repeats = block.layers[layer_cursor_++];
      layer.call = block.calls;
    }
  }
  layers.push_back(std::move(layer));
  return index;
}

ValueId Tracer::add_parameter(ParameterSpec spec) {
  if (!may_own)
    throw Error(ErrorCode::state, spec.name,
                "parameters belong to a Model; an objective only calls models. Move this layer into a model function",
                spec.where);
  if (replaying_ >= 0) {
    const SharedBlock& block = shared_[static_cast<size_t>(replaying_)];
    if (cursor_ >= block.parameters.size())
      throw Error(ErrorCode::state, "Shared '" + block.name + "'", "a later call makes more parameters than the first",
                  spec.where);
    const int32_t index = block.parameters[cursor_++];
    const ParameterRef& made = graph.parameters[static_cast<size_t>(index)];
    if (!(made.shape == spec.shape))
      throw Error(ErrorCode::shape, "Shared '" + block.name + "'",
                  made.name + " has shape " + made.shape.text() + ", this call needs " + spec.shape.text(), spec.where);
    return parameter_value(index);
  }
  ParameterRef ref;
  ref.segment = static_cast<int32_t>(specs.size());
  ref.name = spec.name;
  ref.shape = spec.shape;
  ref.trainable = !spec.buffer;
  ref.buffer = spec.buffer;
  graph.parameters.push_back(ref);
  specs.push_back(std::move(spec));
  const auto index = static_cast<int32_t>(graph.parameters.size()) - 1;
  if (recording_ >= 0) shared_[static_cast<size_t>(recording_)].parameters.push_back(index);
  return parameter_value(index);
}

ValueId Tracer::parameter_value(int32_t index) {
  parameter_values_.resize(graph.parameters.size(), kNoValue);
  ValueId& id = parameter_values_[static_cast<size_t>(index)];
  if (id == kNoValue) {
    const ParameterRef& ref = graph.parameters[static_cast<size_t>(index)];
    const ParameterSpec& spec =
        ref.store == 0 && may_own
            ? specs[static_cast<size_t>(ref.segment)]
            : models[static_cast<size_t>(ref.store)]->segments[static_cast<size_t>(ref.segment)].spec;
    id = graph.add_value({DType::f32, 0, ref.shape}, spec.buffer ? Place::buffer : Place::parameter, index);
  }
  return id;
}

Vars Tracer::share(const std::string& name, const ModelFunction& block, const Vars& inputs) {
  const std::string full = join(scope(), name);
  auto found = std::find_if(shared_.begin(), shared_.end(), [&](const SharedBlock& s) { return s.name == full; });
  const bool first = found == shared_.end();
  if (recording_ >= 0 || replaying_ >= 0)
    throw Error(ErrorCode::state, "Shared '" + name + "'", "a Shared block cannot be called inside another one");
  if (first) shared_.push_back({full, {}, {}, -1});
  const auto index = static_cast<int32_t>(first ? shared_.size() - 1 : static_cast<size_t>(found - shared_.begin()));
  (first ? recording_ : replaying_) = index;
  cursor_ = layer_cursor_ = 0;
  ++shared_[static_cast<size_t>(index)].calls;
  struct Restore {
    Tracer& tracer;
    ~Restore() {
      tracer.recording_ = tracer.replaying_ = -1;
      tracer.pop_scope();
    }
  };
  push_scope(name, Naming::kind);
  const Restore restore{*this};
  return block(inputs);
}

void Tracer::number(const std::vector<int32_t>& order) {
  std::map<std::pair<std::string, std::string>, int> ordinals;
  std::map<std::string, const LayerRecord*> taken;
  std::vector<bool> done(layers.size(), false);
  for (const int32_t node : order) {
    int32_t index = node_layer[static_cast<size_t>(node)];
    if (index < 0) continue;
    const int32_t call = layers[static_cast<size_t>(index)].call;
    if (const int32_t first = layers[static_cast<size_t>(index)].repeats; first >= 0) index = first;
    LayerRecord& layer = layers[static_cast<size_t>(index)];
    if (!done[static_cast<size_t>(index)]) {
      done[static_cast<size_t>(index)] = true;
      std::string leaf = layer.explicit_name;
      if (leaf.empty() && layer.naming == Naming::index && layer.counts)
        leaf = std::to_string(ordinals[{layer.scope, ""}]++);
      else if (leaf.empty())
        leaf = layer.kind + std::to_string(++ordinals[{layer.scope, layer.kind}]);
      layer.name = join(layer.scope, leaf);
    }
    Node& named = graph.nodes[static_cast<size_t>(node)];
    named.name = named.op->random && call > 0 ? cat(layer.name, "#", call + 1) : layer.name;
  }
  for (ParameterSpec& spec : specs) {
    if (spec.layer < 0) continue;
    spec.name = join(layers[static_cast<size_t>(spec.layer)].name, spec.leaf);
  }
  std::map<std::string, Where> names;
  for (const ParameterSpec& spec : specs) {
    const auto [at, fresh] = names.emplace(spec.name, spec.where);
    if (!fresh)
      throw Error(ErrorCode::state, spec.name,
                  "two parameters have this name (" + at->second.text() + " and " + spec.where.text() +
                      "); give one another .name, put it into a Scope, or share it with Shared",
                  spec.where);
  }
}

uint64_t Tracer::key_seed() const {
  uint64_t key = seed;
  if (!may_own)  // a sum: models are met in the order in which the compiler evaluates operands
    for (const auto& called : models) key += mix(called->seed, hash_name(called->name));
  return key;
}

void Tracer::rebuild(const std::vector<int32_t>& order, std::vector<ValueId>& roots) {
  Graph old = std::move(graph);
  graph = Graph();
  graph.phase = old.phase;
  graph.scalars = old.scalars;
  graph.totals = old.totals;
  std::vector<ValueId> moved(old.values.size(), kNoValue);
  std::vector<int32_t> slots(old.parameters.size(), -1);
  std::set<uint64_t> streams;
  const auto move_parameter = [&](size_t index) {
    if (slots[index] >= 0) return;
    slots[index] = static_cast<int32_t>(graph.parameters.size());
    graph.parameters.push_back(old.parameters[index]);
  };
  if (!may_own)  // called models keep the order of their segments
    for (size_t i = 0; i < old.parameters.size(); ++i) move_parameter(i);
  const auto move_value = [&](ValueId id) {
    ValueId& target = moved[static_cast<size_t>(id)];
    if (target != kNoValue) return target;
    Value value = old.value(id);
    if (value.place == Place::parameter || value.place == Place::buffer) {
      move_parameter(static_cast<size_t>(value.slot));
      value.slot = slots[static_cast<size_t>(value.slot)];
    }
    value.producer = -1;
    target = static_cast<ValueId>(graph.values.size());
    graph.values.push_back(std::move(value));
    return target;
  };
  for (const NamedValue& input : old.inputs) graph.inputs.push_back({input.name, move_value(input.value)});
  for (const int32_t index : order) {
    Node node = old.nodes[static_cast<size_t>(index)];
    for (ValueId& id : node.inputs) id = move_value(id);
    for (ValueId& id : node.outputs) {
      id = move_value(id);
      graph.value(id).producer = static_cast<int32_t>(graph.nodes.size());
    }
    if (node.op->random) {
      const bool own = node_layer[static_cast<size_t>(index)] >= 0;
      const auto stream =
          own ? stream_of(key_seed(), model, node.name) : static_cast<uint64_t>(node.attributes.integer("stream"));
      uint64_t fresh = stream;  // a second call of the same model draws other numbers
      for (uint64_t call = 1; !streams.insert(fresh).second; ++call) fresh = mix(call, stream);
      node.attributes.set("stream", static_cast<int64_t>(fresh));
    }
    graph.nodes.push_back(std::move(node));
  }
  for (size_t i = 0; i < old.parameters.size(); ++i) move_parameter(i);
  if (may_own) {  // segments in canonical order
    std::vector<ParameterSpec> sorted;
    for (ParameterRef& ref : graph.parameters) {
      if (ref.store != 0) continue;
      sorted.push_back(specs[static_cast<size_t>(ref.segment)]);
      ref.name = sorted.back().name;
      ref.segment = static_cast<int32_t>(sorted.size()) - 1;
    }
    specs = std::move(sorted);
  }
  for (ValueId& root : roots) root = move_value(root);
}

void Tracer::finish(std::vector<ValueId>& roots) {
  const std::vector<int32_t> order = post_order(graph, roots);
  number(order);
  rebuild(order, roots);
}

TraceGuard::TraceGuard(std::shared_ptr<Tracer> tracer) : previous_(std::move(current_tracer)) {
  current_tracer = std::move(tracer);
}
TraceGuard::~TraceGuard() { current_tracer = std::move(previous_); }

Var Access::make(const std::shared_ptr<Tracer>& tracer, ValueId value) {
  Var var;
  var.tracer_ = tracer;
  var.value_ = value;
  return var;
}

std::shared_ptr<Tracer> Access::tracer(const Var& var) {
  if (var.value_ < 0) throw Error(ErrorCode::state, "Var", "is empty: assign the result of an operation first");
  std::shared_ptr<Tracer> tracer = var.tracer_.lock();
  if (!tracer)
    throw Error(ErrorCode::state, "Var", "the function that made it has returned; a Var lives no longer than that");
  return tracer;
}

ValueId Access::value(const Var& var) {
  tracer(var);
  return var.value_;
}

ValueId Access::value(const Var& var, const Tracer& of) {
  if (tracer(var).get() != &of)
    throw Error(ErrorCode::state, "Var", "values of two different traces cannot be combined; pass it as an input");
  return var.value_;
}

const ValueType& Access::type(const Var& var) { return tracer(var)->graph.type(var.value_); }

namespace {

std::shared_ptr<Tracer> common_tracer(const std::vector<Var>& inputs) {
  if (inputs.empty()) return Tracer::current();
  std::shared_ptr<Tracer> tracer = Access::tracer(inputs.front());
  for (const Var& input : inputs) Access::value(input, *tracer);
  return tracer;
}

Var add(const std::shared_ptr<Tracer>& tracer, int32_t layer, std::string_view op, const std::vector<Var>& inputs,
        Attributes attributes, Where where) {
  std::vector<ValueId> ids;
  for (const Var& input : inputs) ids.push_back(Access::value(input, *tracer));
  const int32_t node = tracer->graph.add_node(op, std::move(ids), std::move(attributes),
                                              tracer->layers[static_cast<size_t>(layer)].name, where);
  tracer->node_layer.resize(tracer->graph.nodes.size(), -1);
  tracer->node_layer[static_cast<size_t>(node)] = layer;
  return Access::make(tracer, tracer->graph.nodes[static_cast<size_t>(node)].outputs[0]);
}

}  // namespace

Var apply(std::string_view op, const std::vector<Var>& inputs, Attributes attributes, std::string_view kind,
          Where where) {
  const std::shared_ptr<Tracer> tracer = common_tracer(inputs);
  return add(tracer, tracer->add_layer(kind, "", where, where.known()), op, inputs, std::move(attributes), where);
}

Layer::Layer(const Var& x, std::string_view kind, std::string_view explicit_name, Where where)
    : Layer(Access::tracer(x), kind, explicit_name, where) {}

Layer::Layer(std::string_view kind, std::string_view explicit_name, Where where)
    : Layer(Tracer::current(), kind, explicit_name, where) {}

Layer::Layer(std::shared_ptr<Tracer> tracer, std::string_view kind, std::string_view explicit_name, Where where)
    : tracer_(std::move(tracer)), layer_(tracer_->add_layer(kind, explicit_name, where, true)), where_(where) {
  name_ = tracer_->layers[static_cast<size_t>(layer_)].name;
}

Var Layer::parameter(std::string_view leaf, Shape canonical, Init init, TorchLayout torch, bool decay) {
  ParameterSpec spec;
  spec.name = join(name_, leaf);
  spec.shape = canonical;
  spec.torch_shape = canonical;
  if (torch == TorchLayout::convolution) spec.torch_shape = {canonical[0], canonical[3], canonical[1], canonical[2]};
  spec.torch = torch;
  spec.init = init;
  spec.decay = decay && canonical.rank() >= 2;
  spec.where = where_;
  spec.layer = layer_;
  spec.leaf = std::string(leaf);
  return Access::make(tracer_, tracer_->add_parameter(std::move(spec)));
}

Var Layer::buffer(std::string_view leaf, Shape shape, double initial) {
  ParameterSpec spec;
  spec.name = join(name_, leaf);
  spec.shape = spec.torch_shape = shape;
  spec.init = init::constant(initial);
  spec.decay = false;
  spec.buffer = true;
  spec.where = where_;
  spec.layer = layer_;
  spec.leaf = std::string(leaf);
  return Access::make(tracer_, tracer_->add_parameter(std::move(spec)));
}

Var Layer::apply(std::string_view op, const std::vector<Var>& inputs, Attributes attributes) {
  return add(tracer_, layer_, op, inputs, std::move(attributes), where_);
}

Vars declare_inputs(const std::shared_ptr<Tracer>& tracer, const std::vector<Field>& fields) {
  Vars vars;
  for (const Field& field : fields) {
    if (field.name.empty()) throw Error(ErrorCode::option, "Field.name", "is empty");
    for (const int64_t size : field.shape)
      if (size < 1)
        throw Error(ErrorCode::shape, "input \"" + field.name + "\"",
                    "shape " + field.shape.text() + ": each size must be at least 1");
    Graph& graph = tracer->graph;
    const auto slot = static_cast<int32_t>(graph.inputs.size());
    const ValueId given = graph.add_value({field.dtype, 1, field.shape}, Place::input, slot);
    graph.inputs.push_back({field.name, given});
    const int32_t node = graph.add_node("load", {given}, {}, field.name);
    tracer->node_layer.resize(graph.nodes.size(), -1);
    vars.add(field.name, Access::make(tracer, graph.nodes[static_cast<size_t>(node)].outputs[0]));
  }
  return vars;
}

Vars inline_model(const std::shared_ptr<Tracer>& tracer, const std::shared_ptr<ModelState>& model, const Vars& inputs) {
  Graph& graph = tracer->graph;
  const Graph& callee = model->graph;
  const auto store_of = [&](const std::shared_ptr<ModelState>& state) {
    for (size_t i = 0; i < tracer->models.size(); ++i)
      if (tracer->models[i] == state) return static_cast<int32_t>(i);
    tracer->models.push_back(state);
    return static_cast<int32_t>(tracer->models.size()) - 1;
  };
  std::vector<ValueId> moved(callee.values.size(), kNoValue);
  std::vector<int32_t> slots;
  for (const ParameterRef& ref : callee.parameters) {
    ParameterRef copy = ref;
    copy.store = store_of(ref.store == 0 ? model : model->models[static_cast<size_t>(ref.store)]);
    const auto same = std::find_if(graph.parameters.begin(), graph.parameters.end(), [&](const ParameterRef& other) {
      return other.store == copy.store && other.segment == copy.segment;
    });
    slots.push_back(static_cast<int32_t>(same - graph.parameters.begin()));
    if (same == graph.parameters.end()) graph.parameters.push_back(copy);
  }
  for (const Node& node : callee.nodes) {
    if (node.op->name == "load") {
      const NamedValue& input = callee.inputs[static_cast<size_t>(callee.value(node.inputs[0]).slot)];
      const ValueId given = Access::value(inputs[input.name], *tracer);
      if (!(graph.type(given) == callee.type(node.outputs[0])))
        throw Error(ErrorCode::shape, "model '" + model->name + "'",
                    "input \"" + input.name + "\" must be " + callee.type(node.outputs[0]).text() + ", got " +
                        graph.type(given).text());
      moved[static_cast<size_t>(node.outputs[0])] = given;
      continue;
    }
    Node copy = node;
    copy.store = store_of(node.store == 0 ? model : model->models[static_cast<size_t>(node.store)]);
    for (ValueId& id : copy.inputs) {
      const Value& value = callee.value(id);
      ValueId& target = moved[static_cast<size_t>(id)];
      if (target == kNoValue) target = tracer->parameter_value(slots[static_cast<size_t>(value.slot)]);
      id = target;
    }
    for (ValueId& id : copy.outputs) {
      const ValueId fresh = graph.add_value(callee.value(id).type, callee.value(id).place, callee.value(id).slot);
      moved[static_cast<size_t>(id)] = fresh;
      graph.value(fresh).producer = static_cast<int32_t>(graph.nodes.size());
      id = fresh;
    }
    graph.nodes.push_back(std::move(copy));
    tracer->node_layer.resize(graph.nodes.size(), -1);
  }
  Vars outputs;
  for (const NamedValue& output : callee.outputs)
    outputs.add(output.name, Access::make(tracer, moved[static_cast<size_t>(output.value)]));
  return outputs;
}

}  // namespace brisk::graph
