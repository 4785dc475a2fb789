// brisk/op.h: operations of your own, with a derivative written by hand, and the check of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "brisk/model.h"

namespace brisk {

/// What a derivative reads of the forward pass. Memory of what it does not read is used again at once.
enum class Reads : uint8_t { nothing, inputs, outputs, both };

/// Shape and element type of a value while a model is traced, when the number of samples N has no value yet.
struct BRISK_EXPORT TensorType {
  Shape shape{};  ///< of one sample when batched, of the whole value otherwise
  DType dtype = DType::f32;
  bool batched = false;  ///< the value is [N, ...shape]

  /// Dimensions, with the leading N counted.
  int rank() const { return shape.rank() + (batched ? 1 : 0); }
  /// Size of a dimension, N counted; negative counts from the end. dim(0) of a batched type is N: Error [shape].
  int64_t dim(int axis) const;
  /// "[N, 50, 4, 4]"
  std::string text() const;
};

namespace op_detail {
[[noreturn]] BRISK_EXPORT void refuse_element(int index, size_t size, const char* missing);
}

/// What an operation is handed, one element an input or output. An index that is not there is an Error [state].
template <class T>
class OpList {
 public:
  /// missing: why the list is empty, for the message.
  OpList(const T* first, size_t size, const char* missing = "") : first_(first), size_(size), missing_(missing) {}
  const T& operator[](int index) const {
    if (index < 0 || static_cast<size_t>(index) >= size_) op_detail::refuse_element(index, size_, missing_);
    return first_[index];
  }
  size_t size() const { return size_; }
  const T* begin() const { return first_; }
  const T* end() const { return first_ + size_; }

 private:
  const T* first_;
  size_t size_;
  const char* missing_;
};
using TensorTypes = OpList<TensorType>;
using ConstViews = OpList<ConstView>;
using Views = OpList<View>;

/// What an operation may use while it runs.
class BRISK_EXPORT OpContext {
 public:
  virtual ~OpContext();
  /// Calls f(first, last) for pieces that together are [0, count), on all threads of the step, and returns when all are
  /// done. The pieces follow from count alone (at most 256, of even size): when f writes only what belongs to its
  /// piece, the bits are the same for any number of threads. The first exception that f throws is rethrown here. Called
  /// inside f, it runs its pieces one after another.
  template <class F>
  void parallel_for(int64_t count, F&& f) const {
    using Callable = std::remove_reference_t<F>;
    run([](void* function, int64_t first, int64_t last) { (*static_cast<Callable*>(function))(first, last); },
        const_cast<void*>(static_cast<const void*>(std::addressof(f))), count);
  }

 protected:
  using Piece = void (*)(void* function, int64_t first, int64_t last);
  virtual void run(Piece piece, void* function, int64_t count) const = 0;
};

/// What the derivative is computed from, and where it goes. Elements lie as in forward().
struct OpBackward {
  ConstViews inputs;            ///< when backward_reads() says inputs or both; else reading them is an Error [state]
  ConstViews outputs;           ///< when backward_reads() says outputs or both
  ConstViews output_gradients;  ///< of each output
  /// Of each f32 input: overwrite every element; adding up over micro-batches and uses is Brisk's. There is memory also
  /// for a gradient that nobody needs, which may be left as it is (wants). Integers have none.
  Views input_gradients;
  OpList<uint8_t> wanted;
  bool wants(int input) const { return wanted[input] != 0; }
};

/// An operation of your own with one output. Objects are copied into the model and called from several threads' steps:
/// every function is const and writes nothing but what it is given. What they throw leaves Step::run, Step::evaluate or
/// Trainer::fit as Error [state] naming the operation and the line that applied it; no parameter moves, the open window
/// is dropped, the step stays usable.
class BRISK_EXPORT CustomOp {
 public:
  virtual ~CustomOp();
  /// How plans and errors call it, and layers are numbered by: letters, digits, _ and -.
  virtual std::string name() const = 0;
  /// Type of the output: batched exactly when an input is. Called while tracing and planning; throw what you like to
  /// refuse inputs: it becomes Error [shape] with the user's line.
  virtual TensorType infer(TensorTypes in) const = 0;
  /// What backward reads besides the gradient of the output. Read less: need less memory.
  virtual Reads backward_reads() const { return Reads::both; }
  /// Writes every element of out. Views are contiguous and row-major: [N, ...] with N in its place for batched values,
  /// PyTorch's layout for parameters. N is that of the micro-batch.
  virtual void forward(const OpContext& c, ConstViews in, Views out) const = 0;
  /// Writes the gradients of the inputs: sums over the samples for inputs without N.
  virtual void backward(const OpContext& c, const OpBackward& g) const = 0;

 protected:
  CustomOp() = default;
  CustomOp(const CustomOp&) = default;
  CustomOp& operator=(const CustomOp&) = default;
};

/// Applies an operation to values of one trace (at least one). Throws Error [option] for a name that is none, [shape]
/// when infer refuses the inputs; a backend that cannot run it says so with Error [backend] when a plan is made.
BRISK_EXPORT Var custom_op(std::shared_ptr<const CustomOp> op, const std::vector<Var>& inputs,
                           Where where = Where::here());
/// The same with a copy of `op`: custom_op(LearntSwish{}, {x, b}).
template <class Op>
requires(std::is_base_of_v<CustomOp, Op>) Var
    custom_op(const Op& op, const std::vector<Var>& inputs, Where where = Where::here()) {
  return custom_op(std::shared_ptr<const CustomOp>(std::make_shared<Op>(op)), inputs, where);
}

struct CheckGradientOptions {
  std::vector<bool> batched{};   ///< by input: its first size is N; empty: that of the first input alone
  int directions = 4;            ///< random directions in which all elements of an input move at once, >= 0
  int64_t elements = 256;        ///< of an input that are moved alone; of larger inputs as many are drawn, >= 1
  uint64_t seed = 0;             ///< of values, gradients, elements and directions
  double tolerance = 2e-3;       ///< of a difference relative to the gradient, beyond the rounding of f32; > 0
  std::vector<Tensor> values{};  ///< of the inputs, of their shapes; empty: uniform in [-1, 1). Gives integers, too
};

/// What check_gradient found. `text` says it in a sentence, for people.
struct GradientReport {
  bool ok = false;
  std::string text{};
  int input = -1;         ///< the worst element: where backward and finite differences are farthest apart
  int64_t element = -1;   ///< -1: a direction, not an element
  double backward = 0;    ///< gradient by backward()
  double difference = 0;  ///< gradient by finite differences
};

/// Runs an operation alone on inputs of these concrete shapes (N included) and compares backward with central finite
/// differences of sum(w y), w random, in single elements and along random directions. At a kink any value between the
/// one-sided derivatives is right. Not ok are also: elements of the output or of a gradient that are not overwritten,
/// writes outside of them, other bits when the pieces of parallel_for run in another order.
/// Throws Error [option] for options out of range, Error [shape] for an infer that does not fit; what the operation
/// throws flies through.
BRISK_EXPORT GradientReport check_gradient(const CustomOp& op, const std::vector<Shape>& shapes,
                                           const CheckGradientOptions& options = {});

}  // namespace brisk
