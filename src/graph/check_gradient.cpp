// Backward of a user's operation against finite differences, both on the operation alone.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "brisk/op.h"
#include "core/philox.h"
#include "core/team.h"
#include "core/text.h"

namespace brisk {
namespace {

constexpr double kRounding = 6e-8;  // of an f32 that is computed
constexpr double kSlack = 16;       // for operations of many roundings

/// Random numbers that follow from (seed, what for, index).
class Draws {
 public:
  Draws(uint64_t seed, std::string_view purpose) : key_(mix(seed, hash_name(purpose))) {}
  uint32_t word(int64_t index) const { return philox(key_, philox_counter(static_cast<uint64_t>(index), 0, 0))[0]; }
  /// [-1, 1)
  double both_signs(int64_t index) const { return 2.0 * brisk::uniform(word(index)) - 1; }

 private:
  uint64_t key_;
};

/// Elements between margins that nobody may write.
class Fenced {
 public:
  Fenced(const Shape& shape, DType dtype) : shape_(shape), dtype_(dtype) { bytes_.resize(size() + 2 * kMargin); }
  /// Fills elements and margins with one byte: all floats are NaN (0xFF), or -3e38 or so (0xFE).
  void fill(int byte) {
    byte_ = static_cast<std::byte>(byte);
    std::fill(bytes_.begin(), bytes_.end(), byte_);
  }
  void set(const ConstView& from) { std::memcpy(bytes_.data() + kMargin, from.raw(), size()); }
  bool intact() const {
    const auto same = [this](std::byte b) { return b == byte_; };
    const auto end = static_cast<std::ptrdiff_t>(kMargin + size());
    return std::all_of(bytes_.begin(), bytes_.begin() + kMargin, same) &&
           std::all_of(bytes_.begin() + end, bytes_.end(), same);
  }
  View view() { return {bytes_.data() + kMargin, shape_, dtype_}; }
  float* floats() { return reinterpret_cast<float*>(bytes_.data() + kMargin); }
  int64_t count() const { return shape_.count(); }

 private:
  static constexpr size_t kMargin = 256;
  size_t size() const { return static_cast<size_t>(shape_.count() * size_of(dtype_)); }
  Shape shape_;
  DType dtype_;
  std::byte byte_{0};
  std::vector<std::byte> bytes_;
};

/// Runs pieces in this thread, from the first or from the last on.
class SerialContext : public OpContext {
 public:
  explicit SerialContext(bool backwards) : backwards_(backwards) {}

 private:
  void run(Piece piece, void* function, int64_t count) const override {
    const int64_t pieces = Team::pieces(count);
    for (int64_t i = 0; i < pieces; ++i) {
      const int64_t at = backwards_ ? pieces - 1 - i : i;
      piece(function, Team::piece_begin(at, count), Team::piece_begin(at + 1, count));
    }
  }
  const bool backwards_;
};

std::string shapes_text(const std::vector<Shape>& shapes) {
  std::string text;
  for (const Shape& shape : shapes) text += (text.empty() ? "" : ", ") + shape.text();
  return text;
}

class Checker {
 public:
  Checker(const CustomOp& op, const std::vector<Shape>& shapes, const CheckGradientOptions& options)
      : op_(op), options_(options), reads_(op.backward_reads()) {
    check_options(shapes);
    make_inputs(shapes);
    make_output(shapes);
  }

  GradientReport run() {
    report_.ok = forward_is_right() && backward_is_right();
    for (size_t i = 0; i < inputs_.size() && report_.ok; ++i) {
      if (!is_float(i)) continue;
      check_elements(i);
      for (int direction = 0; direction < options_.directions && report_.ok; ++direction) check_direction(i, direction);
    }
    if (report_.ok)
      report_.text =
          cat(op_.name(), ": backward agrees with ", compared_, " finite differences; farthest apart: ", place(),
              ", backward ", report_.backward, ", finite difference ", report_.difference);
    return report_;
  }

 private:
  [[noreturn]] void refuse(const std::string& field, const std::string& message) const {
    throw Error(ErrorCode::option, cat("CheckGradientOptions.", field), message);
  }

  void check_options(const std::vector<Shape>& shapes) const {
    if (shapes.empty()) throw Error(ErrorCode::option, "check_gradient.shapes", "are none; give one an input");
    const auto fits = [&](size_t count) { return count == 0 || count == shapes.size(); };
    const char* one_each = "needs one an input, or none";
    if (!fits(options_.batched.size())) refuse("batched", one_each);
    if (!fits(options_.values.size())) refuse("values", one_each);
    constexpr int kMostDirections = 1 << 20;
    if (options_.directions < 0 || options_.directions > kMostDirections)
      refuse(cat("directions = ", options_.directions), cat("must be 0 to ", kMostDirections));
    if (options_.elements < 1) refuse(cat("elements = ", options_.elements), "must be at least 1");
    if (!(options_.tolerance > 0 && options_.tolerance < 1))
      refuse(cat("tolerance = ", options_.tolerance), "must be more than 0 and less than 1");
    for (size_t i = 0; i < options_.values.size(); ++i)
      if (!(options_.values[i].shape() == shapes[i]))
        refuse("values", cat("input ", i, " has shape ", options_.values[i].shape(), ", asked for is ", shapes[i]));
  }

  void make_inputs(const std::vector<Shape>& shapes) {
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (shapes[i].count() < 1) throw Error(ErrorCode::shape, cat("input ", i), cat(shapes[i], " has no elements"));
      Tensor values = options_.values.empty() ? Tensor(shapes[i]) : options_.values[i];
      if (options_.values.empty()) {
        const Draws draws(options_.seed, cat("input ", i));
        for (int64_t e = 0; e < values.count(); ++e) values.data<float>()[e] = static_cast<float>(draws.both_signs(e));
      }
      inputs_.emplace_back(values.shape(), values.dtype());
      inputs_.back().fill(0xFF);
      inputs_.back().set(values);
      input_views_.push_back(inputs_.back().view());
      gradients_.emplace_back(values.shape(), values.dtype());
    }
  }

  void make_output(const std::vector<Shape>& shapes) {
    std::vector<TensorType> types;
    int64_t samples = 0;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const bool batched = options_.batched.empty() ? i == 0 : options_.batched[i];
      TensorType type{shapes[i], inputs_[i].view().dtype(), batched && shapes[i].rank() > 0};
      if (type.batched) {
        type.shape = Shape(std::span<const int64_t>(shapes[i].begin() + 1, shapes[i].end()));
        samples = shapes[i][0];
      }
      types.push_back(type);
    }
    const TensorType out = op_.infer({types.data(), types.size()});
    Shape shape;
    if (out.batched) shape.append(samples);
    for (const int64_t size : out.shape) shape.append(size);
    if (out.dtype != DType::f32 || shape.count() < 1)
      throw Error(ErrorCode::shape, op_.name(),
                  cat("infer() gives ", name(out.dtype), " ", shape, " for ", shapes_text(shapes),
                      "; a gradient needs f32 and at least one element"));
    output_ = Fenced(shape, DType::f32);
    weights_ = Fenced(shape, DType::f32);
    weights_.fill(0xFF);
    const Draws draws(options_.seed, "weights");
    for (int64_t e = 0; e < shape.count(); ++e) weights_.floats()[e] = static_cast<float>(draws.both_signs(e));
  }

  bool is_float(size_t input) { return inputs_[input].view().dtype() == DType::f32; }

  bool fail(const std::string& what) {
    report_.ok = false;
    report_.text = cat(op_.name(), ": ", what);
    return false;
  }

  /// y, with the output filled with `byte` before.
  std::vector<float> forward(int byte = 0xFF, bool backwards = false) {
    output_.fill(byte);
    const View view = output_.view();
    op_.forward(SerialContext(backwards), {input_views_.data(), input_views_.size()}, {&view, 1});
    return {output_.floats(), output_.floats() + output_.count()};
  }

  void backward(int byte, bool backwards) {
    std::vector<View> views;
    for (Fenced& gradient : gradients_) {
      gradient.fill(byte);
      const bool exists = gradient.view().dtype() == DType::f32;
      views.push_back(exists ? gradient.view() : View(nullptr, Shape(), gradient.view().dtype()));
    }
    const ConstView output = output_.view(), weights = weights_.view();
    const std::vector<uint8_t> wanted(inputs_.size(), 1);
    const bool inputs = reads_ == Reads::inputs || reads_ == Reads::both;
    const bool outputs = reads_ == Reads::outputs || reads_ == Reads::both;
    op_.backward(SerialContext(backwards),
                 {.inputs = {input_views_.data(), inputs ? input_views_.size() : 0,
                             "backward_reads() says that backward reads no inputs"},
                  .outputs = {&output, outputs ? size_t{1} : 0, "backward_reads() says that it reads no outputs"},
                  .output_gradients = {&weights, 1},
                  .input_gradients = {views.data(), views.size()},
                  .wanted = {wanted.data(), wanted.size()}});
  }

  /// The first element in which two lists of floats differ as bytes, or -1.
  static int64_t first_difference(const std::vector<float>& a, const std::vector<float>& b) {
    for (size_t i = 0; i < a.size(); ++i)
      if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) return static_cast<int64_t>(i);
    return -1;
  }

  static const char* overwritten() { return ", is not overwritten: it depends on what was there before"; }

  bool all_intact() {
    const auto intact = [](const Fenced& memory) { return memory.intact(); };
    return std::all_of(inputs_.begin(), inputs_.end(), intact) &&
           std::all_of(gradients_.begin(), gradients_.end(), intact) && output_.intact() && weights_.intact();
  }

  bool forward_is_right() {
    first_ = forward();
    if (!all_intact()) return fail("forward writes outside of the output");
    if (const int64_t at = first_difference(first_, forward(0xFE)); at >= 0)
      return fail(cat("output, element ", at, overwritten()));
    if (const int64_t at = first_difference(first_, forward(0xFF, true)); at >= 0)
      return fail(cat("output, element ", at, ", has other bits when the pieces of parallel_for run in another order"));
    for (size_t i = 0; i < first_.size(); ++i)
      if (!std::isfinite(first_[i])) return fail(cat("output, element ", i, ", is ", static_cast<double>(first_[i])));
    return true;
  }

  bool backward_is_right() {
    std::vector<std::vector<float>> results[3];
    for (int turn = 0; turn < 3; ++turn) {
      backward(turn == 1 ? 0xFE : 0xFF, turn == 2);
      if (!all_intact()) return fail("backward writes outside of the gradients");
      for (size_t i = 0; i < gradients_.size(); ++i)
        results[turn].emplace_back(gradients_[i].floats(),
                                   gradients_[i].floats() + (is_float(i) ? gradients_[i].count() : 0));
    }
    for (size_t i = 0; i < gradients_.size(); ++i) {
      const std::string which = cat("gradient of input ", i, ", element ");
      if (const int64_t at = first_difference(results[0][i], results[1][i]); at >= 0)
        return fail(cat(which, at, overwritten()));
      if (const int64_t at = first_difference(results[0][i], results[2][i]); at >= 0)
        return fail(cat(which, at, ", has other bits when the pieces of parallel_for run in another order"));
      for (size_t e = 0; e < results[0][i].size(); ++e)
        if (!std::isfinite(results[0][i][e]))
          return fail(cat(which, e, ", is ", static_cast<double>(results[0][i][e])));
    }
    analytic_ = std::move(results[0]);
    return true;
  }

  /// sum w (y - y at the given inputs), and how much of it may be rounding.
  struct Objective {
    double value = 0, rounding = 0;
  };
  Objective objective() {
    const std::vector<float> y = forward();
    Objective sum;
    double squares = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      if (y[i] == first_[i]) continue;  // it does not depend on what has moved
      const double w = weights_.floats()[i];
      sum.value += w * (static_cast<double>(y[i]) - static_cast<double>(first_[i]));
      squares += w * w * std::max<double>(static_cast<double>(y[i]) * y[i], static_cast<double>(first_[i]) * first_[i]);
    }
    sum.rounding = kSlack * kRounding * std::sqrt(squares);
    return sum;
  }

  /// A move of the elements of one input: their distances, and the objective after it.
  struct Move {
    double expected = 0;  ///< by the gradient
    double size = 0;      ///< root of the sum of squares of the contributions to `expected`
    double distance = 0;
    Objective objective;
  };
  template <class Step>
  Move move(size_t input, int64_t first, int64_t last, Step step) {
    float* x = inputs_[input].floats();
    const std::vector<float> kept(x + first, x + last);
    Move made;
    double squares = 0;
    for (int64_t e = first; e < last; ++e) {
      const float from = x[e];
      x[e] = static_cast<float>(static_cast<double>(from) + step(e));
      made.distance = static_cast<double>(x[e]) - static_cast<double>(from);
      const double part = static_cast<double>(analytic_[input][static_cast<size_t>(e)]) * made.distance;
      made.expected += part;
      squares += part * part;
    }
    made.size = std::sqrt(squares);
    made.objective = objective();
    std::copy(kept.begin(), kept.end(), x + first);
    return made;
  }

  /// Typical size of the input's elements: what a step is measured by.
  double scale(size_t input) {
    double squares = 0;
    const float* x = inputs_[input].floats();
    for (int64_t e = 0; e < inputs_[input].count(); ++e) squares += static_cast<double>(x[e]) * x[e];
    return squares > 0 ? std::sqrt(squares / static_cast<double>(inputs_[input].count())) : 1;
  }

  double typical_gradient(size_t input) const {
    double squares = 0;
    for (const float g : analytic_[input]) squares += static_cast<double>(g) * g;
    return std::sqrt(squares / static_cast<double>(analytic_[input].size()));
  }

  std::string place() const {
    return cat("input ", report_.input, report_.element < 0 ? ", a direction" : cat(", element ", report_.element));
  }

  /// Remembers the comparison that is worst so far; false when it is beyond what is allowed.
  bool compare(size_t input, int64_t element, double backward_value, double difference, double allowed) {
    ++compared_;
    const double excess = std::abs(backward_value - difference) / allowed;
    if (!(excess <= worst_)) {
      worst_ = excess;
      report_.input = static_cast<int>(input);
      report_.element = element;
      report_.backward = backward_value;
      report_.difference = difference;
    }
    return excess <= 1;
  }

  void check_elements(size_t input) {
    const int64_t count = inputs_[input].count();
    const double typical = typical_gradient(input), size = scale(input);
    const Draws draws(options_.seed, cat("elements ", input));
    bool right = true;
    for (int64_t k = 0; k < std::min(count, options_.elements); ++k)
      right &= check_element(input, count <= options_.elements ? k : draws.word(k) % count, size, typical);
    if (!right)
      fail(cat("gradient of input ", report_.input, ", element ", report_.element, ": backward gives ",
               report_.backward, ", finite differences ", report_.difference));
  }

  /// Richardson's extrapolation of central differences, with smaller steps near kinks.
  bool check_element(size_t input, int64_t element, double size, double typical) {
    const double gradient = static_cast<double>(analytic_[input][static_cast<size_t>(element)]);
    const double x = std::abs(static_cast<double>(inputs_[input].floats()[element]));
    double difference = 0, allowed = 1, low = 0, high = 0;
    for (const double fraction : {1.0 / 32, 1.0 / 128, 1.0 / 512}) {
      const double h = fraction * std::max(x, size);
      const auto at = [&](double step) { return move(input, element, element + 1, [=](int64_t) { return step; }); };
      const Move above = at(h), below = at(-h), far_above = at(2 * h), far_below = at(-2 * h);
      const auto slope = [](const Move& a, const Move& b) {
        return (a.objective.value - b.objective.value) / (a.distance - b.distance);
      };
      difference = (4 * slope(above, below) - slope(far_above, far_below)) / 3;
      const double rounding = (above.objective.rounding + below.objective.rounding) / h;
      allowed = options_.tolerance * std::max({std::abs(gradient), std::abs(difference), typical}) + rounding +
                std::numeric_limits<float>::min();
      if (std::abs(gradient - difference) <= allowed) break;
      const double sides[] = {above.objective.value / above.distance, below.objective.value / below.distance};
      low = std::min(sides[0], sides[1]) - allowed, high = std::max(sides[0], sides[1]) + allowed;
    }
    if (std::abs(gradient - difference) > allowed && gradient >= low && gradient <= high) difference = gradient;
    return compare(input, element, gradient, difference, allowed);
  }

  /// All elements of an input at once. A direction in which the two sides bend differently crosses a kink: it says
  /// nothing, the elements have been looked at one by one.
  void check_direction(size_t input, int direction) {
    const Draws draws(options_.seed, cat("direction ", input, " ", direction));
    for (const double fraction : {1.0 / 2048, 1.0 / 16384}) {
      const double h = fraction * scale(input);
      const auto along = [&](double sign) {
        return move(input, 0, inputs_[input].count(), [&, sign](int64_t e) { return sign * h * draws.both_signs(e); });
      };
      const Move above = along(1), below = along(-1);
      const double difference = above.objective.value - below.objective.value;
      const double expected = above.expected - below.expected;
      const double allowed =
          10 * options_.tolerance * std::max({std::abs(difference), std::abs(expected), above.size}) +
          above.objective.rounding + below.objective.rounding + std::numeric_limits<float>::min();
      const double bend = above.objective.value - above.expected + below.objective.value - below.expected;
      if (std::abs(difference - expected) > allowed && std::abs(bend) > allowed / 2) continue;
      if (!compare(input, -1, expected / (2 * h), difference / (2 * h), allowed / (2 * h)))
        fail(cat("gradient of input ", input, " along a random direction: backward gives ", report_.backward,
                 ", finite differences ", report_.difference));
      return;
    }
  }

  const CustomOp& op_;
  const CheckGradientOptions& options_;
  const Reads reads_;
  std::vector<Fenced> inputs_, gradients_;
  std::vector<ConstView> input_views_;
  Fenced output_{Shape(), DType::f32}, weights_{Shape(), DType::f32};
  std::vector<float> first_;                  // the output at the given inputs
  std::vector<std::vector<float>> analytic_;  // the gradients that backward gives, by input
  GradientReport report_;
  int64_t compared_ = 0;
  double worst_ = -1;
};

}  // namespace

GradientReport check_gradient(const CustomOp& op, const std::vector<Shape>& shapes,
                              const CheckGradientOptions& options) {
  return Checker(op, shapes, options).run();
}

}  // namespace brisk
