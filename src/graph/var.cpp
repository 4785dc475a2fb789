// Var, Vars, Scope, Shared and parameter(): the front end of tracing.
#include <cmath>

#include "core/text.h"
#include "graph/model_state.h"
#include "graph/trace.h"

namespace brisk {

using graph::Access;

int Var::rank() const { return Access::type(*this).rank(); }

int64_t Var::dim(int axis) const {
  const graph::ValueType& type = Access::type(*this);
  if (axis < -type.rank() || axis >= type.rank())
    throw Error(ErrorCode::shape, "Var::dim", "axis " + std::to_string(axis) + " of " + type.text());
  const int at = axis < 0 ? axis + type.rank() : axis;
  if (!type.batched()) return type.shape[at];
  if (at == 0)
    throw Error(ErrorCode::shape, "Var::dim",
                "dimension 0 of " + type.text() +
                    " is the number of samples, which has no value while a model is traced; "
                    "reshape(x, {-1, ...}) keeps it");
  return type.shape[at - 1];
}

DType Var::dtype() const { return Access::type(*this).dtype; }
std::string Var::text() const { return Access::type(*this).text(); }

Vars::Vars(std::initializer_list<std::pair<std::string, Var>> entries) {
  for (const auto& [name, value] : entries) add(name, value);
}

Var Vars::operator[](std::string_view name) const {
  std::string names;
  for (const auto& [key, value] : entries_) {
    if (key == name) return value;
    names += (names.empty() ? "" : ", ") + key;
  }
  throw Error(ErrorCode::data, "Vars",
              "no value \"" + std::string(name) + "\"; it has " + (names.empty() ? "none" : names));
}

bool Vars::has(std::string_view name) const {
  for (const auto& [key, value] : entries_)
    if (key == name) return true;
  return false;
}

void Vars::add(std::string name, Var value) {
  if (has(name)) throw Error(ErrorCode::data, "Vars", "\"" + name + "\" twice");
  entries_.emplace_back(std::move(name), std::move(value));
}

Scope::Scope(std::string_view name, Naming naming) {
  const auto tracer = graph::Tracer::current();
  tracer->push_scope(name, naming);
  tracer_ = tracer;
}

Scope::~Scope() {
  if (const auto tracer = tracer_.lock()) tracer->pop_scope();
}

namespace {

/// A parameter or buffer that the user makes in the current scope.
graph::ParameterSpec own_parameter(const graph::Tracer& tracer, const char* what, std::string_view name, Shape shape,
                                   Where where) {
  if (name.empty()) throw Error(ErrorCode::option, cat(what, ".name"), "is empty; give it a name", where);
  for (const int64_t size : shape)
    if (size < 1)
      throw Error(ErrorCode::shape, cat(what, " '", name, "'"), cat("shape ", shape, " has no elements"), where);
  graph::ParameterSpec spec;
  const std::string scope = tracer.scope();
  spec.name = scope.empty() ? std::string(name) : cat(scope, ".", name);
  spec.shape = spec.torch_shape = shape;
  spec.where = where;
  spec.leaf = std::string(name);
  return spec;
}

}  // namespace

Var parameter(std::string_view name, Shape shape, ParameterOptions options, Where where) {
  const auto tracer = graph::Tracer::current();
  graph::ParameterSpec spec = own_parameter(*tracer, "parameter", name, shape, where);
  const double value = options.init.value;
  const bool draws = options.init.kind != Init::Kind::constant;
  if (!std::isfinite(static_cast<float>(value)) || (draws && value < 0))
    throw Error(ErrorCode::option, cat("parameter '", name, "'.init.value = ", value),
                draws ? "must be a finite number of at least 0" : "must be a finite number as an f32", where);
  spec.init = options.init;
  spec.decay = options.decay && shape.rank() >= 2;
  return Access::make(tracer, tracer->add_parameter(std::move(spec)));
}

Var buffer(std::string_view name, const Tensor& values, Where where) {
  const auto tracer = graph::Tracer::current();
  graph::ParameterSpec spec = own_parameter(*tracer, "buffer", name, values.shape(), where);
  if (values.dtype() != DType::f32)
    throw Error(ErrorCode::data, cat("buffer '", name, "'"), cat("must be f32, got ", brisk::name(values.dtype())),
                where);
  spec.values.assign(values.data<float>(), values.data<float>() + values.count());
  spec.decay = false;
  spec.buffer = true;
  return Access::make(tracer, tracer->add_parameter(std::move(spec)));
}

Shared::Shared(std::string_view name, ModelFunction block) : name_(name), block_(std::move(block)) {}

Vars Shared::operator()(const Vars& inputs) const { return graph::Tracer::current()->share(name_, block_, inputs); }

Var Shared::operator()(Var input) const {
  const Vars out = (*this)(Vars{{"input", input}});
  if (out.size() != 1)
    throw Error(ErrorCode::state, "Shared '" + name_ + "'", "returns several values; call it with Vars");
  return out.entries().front().second;
}

void place_segments(ModelState& model) {
  model.parameter_floats = model.buffer_floats = 0;
  for (graph::Segment& segment : model.segments) {
    int64_t& end = segment.spec.buffer ? model.buffer_floats : model.parameter_floats;
    segment.count = segment.spec.shape.count();
    segment.offset = end;
    end += (segment.count + 15) / 16 * 16;
  }
}

}  // namespace brisk
