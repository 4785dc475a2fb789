// A golden case as a program: a model whose parameters are the case's tensors, and an objective on it.
//
// Any tensor with a row a sample becomes a parameter: x = pick X, where row n of the input `pick` is one-hot at n.
// Products with 0 and 1 are exact, so the gradient of X is that of x to the bit. The objective is sum(y (cotangent +
// pick Q)) with Q = 0, so that the gradient of Q is y itself.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "brisk/brisk.h"
#include "golden/golden_data.h"

namespace brisk::golden {

class OpProgram {
 public:
  // The row must live longer.
  explicit OpProgram(const OpCase& row);

  const Model& model() const { return model_; }
  int64_t samples() const { return samples_; }
  Mean objective(const Vars& in) const;
  // "pick" [samples] and "given" (the cotangent, or a loss's target), perhaps "index".
  Inputs inputs() const;
  std::vector<double> pick() const;
  const Array& given() const;
  // Indices that the operation takes beside x, "index" among the inputs; null when it takes none.
  const Array* index() const;

  // Compares what a step found with the case; tolerance: of the largest element. `find` gives a parameter's gradient
  // or, for check_statistics, its value after the step.
  using Find = std::function<std::vector<double>(const std::string& parameter)>;
  void check_gradients(const Find& find, double tolerance) const;
  void check_statistics(const Find& find, double tolerance) const;
  void check_loss(double loss, double tolerance) const;

 private:
  Inputs model_inputs() const;
  Vars outputs(const Vars& in) const;
  void set(const std::string& name, const Array& array, const Shape& shape);

  const OpCase& row_;
  int64_t samples_;
  bool is_loss_;
  bool trains_;  // false: frozen, so that batch norm uses its running statistics
  Model model_;
};

}  // namespace brisk::golden
