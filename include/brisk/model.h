// brisk/model.h: symbolic values, and the model that a function of them becomes.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "brisk/error.h"
#include "brisk/export.h"
#include "brisk/field.h"
#include "brisk/tensor.h"

namespace brisk {

namespace graph {
class Tracer;
struct Access;
}  // namespace graph
struct ModelState;

/// A symbolic value inside a model function. Its leading dimension is the number of samples N, which is never written.
/// A Var lives as long as the function that made it runs; later use is an Error [state].
class BRISK_EXPORT Var {
 public:
  Var() = default;
  /// Dimensions, with the leading N counted.
  int rank() const;
  /// Size of a dimension; negative counts from the end. dim(0) of a batched value is N: Error [shape].
  int64_t dim(int axis) const;
  DType dtype() const;
  /// "[N, 50, 4, 4]"
  std::string text() const;

 private:
  friend struct graph::Access;
  std::weak_ptr<graph::Tracer> tracer_;
  int32_t value_ = -1;
};

/// Named symbolic values in a fixed order.
class BRISK_EXPORT Vars {
 public:
  Vars() = default;
  Vars(std::initializer_list<std::pair<std::string, Var>> entries);
  /// Throws Error [data] that lists the names it has.
  Var operator[](std::string_view name) const;
  bool has(std::string_view name) const;
  void add(std::string name, Var value);
  const std::vector<std::pair<std::string, Var>>& entries() const { return entries_; }
  size_t size() const { return entries_.size(); }

 private:
  std::vector<std::pair<std::string, Var>> entries_;
};

/// The inputs of a model: {{"image", {3, 32, 32}}, {"imu", {12}}}; shapes never contain N.
class BRISK_EXPORT Inputs {
 public:
  Inputs() = default;
  Inputs(std::initializer_list<Field> fields) : fields_(fields) {}
  explicit Inputs(std::vector<Field> fields) : fields_(std::move(fields)) {}
  const std::vector<Field>& fields() const { return fields_; }

 private:
  std::vector<Field> fields_;
};

/// A function of one Var or of Vars that returns one Var or Vars. It runs once and is not kept.
class ModelFunction {
 public:
  template <class F>
  requires(!std::is_same_v<std::decay_t<F>, ModelFunction>)
      ModelFunction(F f) {  // NOLINT: any callable is a model function
    if constexpr (std::is_invocable_v<F&, Var>) {
      one_input_ = true;
      call_ = [f](const Vars& in) mutable { return pack(f(in.entries().front().second)); };
    } else {
      call_ = [f](const Vars& in) mutable { return pack(f(in)); };
    }
  }
  Vars operator()(const Vars& in) const { return call_(in); }
  bool one_input() const { return one_input_; }

 private:
  static Vars pack(Var value) { return {{"output", value}}; }
  static Vars pack(Vars values) { return values; }
  std::function<Vars(const Vars&)> call_;
  bool one_input_ = false;
};

struct ModelOptions {
  std::string name{"model"};  ///< part of every random key: two models of one program should have two names
  uint64_t seed = 0;          ///< of the initial values and dropout streams
};

/// A parameter of a model, as PyTorch would name and shape it.
struct Parameter {
  std::string name{};
  Shape shape{};
  bool frozen = false;
  bool buffer = false;  ///< running statistics: no gradient
};

struct CopyWeightsOptions {
  double blend = 1;  ///< from 0 (stay as you are) to 1 (become the other); 0.005 for a slowly following target network
};

/// A traced function with its parameters. Moves, does not copy. Steps and Predictors share its state.
class BRISK_EXPORT Model {
 public:
  /// One input called "input" of shape [N, ...input].
  Model(ModelFunction function, Shape input, ModelOptions options = {});
  /// Named inputs. Throws Error [shape] at the user's line when an operation does not fit.
  Model(ModelFunction function, Inputs inputs, ModelOptions options = {});
  /// Another handle to a model's state, as Trainers hold one.
  explicit Model(std::shared_ptr<ModelState> state) : state_(std::move(state)) {}
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  ~Model();

  /// Calls the model inside another trace (an objective): its parameters are shared, never copied.
  Var operator()(Var input) const;
  Vars operator()(const Vars& inputs) const;

  const std::string& name() const;
  std::vector<Field> inputs() const;
  std::vector<Parameter> parameters() const;
  /// A copy of a parameter or buffer in PyTorch's layout (O,I,H,W; out x in). Throws Error [state] for an unknown name.
  Tensor parameter(std::string_view name) const;
  /// Overwrites a parameter or buffer; shape and dtype (f32) must agree.
  void set_parameter(std::string_view name, const ConstView& value);
  /// Number of trained elements, buffers not counted.
  int64_t parameter_count() const;
  /// Excludes parameters whose name matches a glob (`*`, `?`) from training: no gradient, no moment, untouched bytes,
  /// evaluation-mode statistics, and no dropout in layers that a glob matches. A pattern that matches nothing is an
  /// Error. Steps made earlier follow at their next run, with new plans; not inside a window. What is trained before
  /// and after keeps its moments; what is unfrozen starts with empty ones and an update count of its own.
  void freeze(std::initializer_list<std::string_view> globs);
  void unfreeze(std::initializer_list<std::string_view> globs);

  /// A deep copy: parameters and buffers of its own with the same values, the same ones frozen. Models that this one
  /// calls are not copied, both call them. name: of the copy, whose dropout streams follow from it; empty: the same
  /// name and streams. Waits for a step that is running on the model.
  Model clone(std::string_view name = {}) const;
  /// w += blend (other's w - w) for every parameter and buffer, frozen ones too; an exact copy when blend is 1. Throws
  /// Error [weights] naming the first parameter that only one of the two has or whose shapes differ, Error [state]
  /// while a step runs on either, Error [option] for a blend outside [0, 1]; then nothing is copied.
  void copy_weights_from(const Model& other, const CopyWeightsOptions& options = {});
  /// The same function for inputs of other sizes: another handle to the same parameters, which are trained, frozen and
  /// loaded through either. Throws Error [weights] unless the function makes the very parameters of this model, of the
  /// same names and shapes: no linear layer may see the changed size.
  Model with_inputs(ModelFunction function, Shape input) const;
  Model with_inputs(ModelFunction function, Inputs inputs) const;

  /// What Steps and Predictors share with this object.
  const std::shared_ptr<ModelState>& state() const { return state_; }

 private:
  std::shared_ptr<ModelState> state_;
};

/// How a scope names its children: by kind and ordinal (conv1, bn1, ...), or 0, 1, 2, ... as in nn.Sequential.
enum class Naming : uint8_t { kind, index };

/// Parameters made while it lives are named "scope.<child>". Scopes nest.
class BRISK_EXPORT Scope {
 public:
  explicit Scope(std::string_view name, Naming naming = Naming::kind);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  std::weak_ptr<graph::Tracer> tracer_;
};

/// How a parameter begins. Drawn from the counter RNG keyed by (seed, model, name): independent of the order of
/// creation.
struct Init {
  enum class Kind : uint8_t { constant, uniform, normal };
  Kind kind = Kind::constant;
  double value = 0;  ///< the constant, the bound b of U(-b, b), or the standard deviation
};
namespace init {
constexpr Init zeros() { return {}; }
constexpr Init ones() { return {Init::Kind::constant, 1}; }
constexpr Init constant(double value) { return {Init::Kind::constant, value}; }
constexpr Init uniform(double bound) { return {Init::Kind::uniform, bound}; }
constexpr Init normal(double deviation) { return {Init::Kind::normal, deviation}; }
}  // namespace init

struct ParameterOptions {
  bool decay =
      true;  ///< false: weight decay never applies by default (it applies by default to two or more dimensions)
  Init init = init::zeros();
};

/// A parameter of the user's own in the current scope, without a batch dimension.
BRISK_EXPORT Var parameter(std::string_view name, Shape shape, ParameterOptions options = {},
                           Where where = Where::here());

/// Numbers that belong to the model and are never trained, in the current scope: files hold them with the weights,
/// set_parameter changes them. values: f32, kept in its shape, without a batch dimension.
BRISK_EXPORT Var buffer(std::string_view name, const Tensor& values, Where where = Where::here());

/// A block whose parameters are made at the first call and shared by every later one (siamese networks).
class BRISK_EXPORT Shared {
 public:
  Shared(std::string_view name, ModelFunction block);
  Var operator()(Var input) const;
  Vars operator()(const Vars& inputs) const;

 private:
  std::string name_;
  ModelFunction block_;
};

}  // namespace brisk
