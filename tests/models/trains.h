// What the tests of networks share: shapes and sizes of a model's parameters, and whether it learns one batch.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "brisk/brisk.h"

namespace brisk {

inline std::map<std::string, Shape> shapes_of(const Model& model) {
  std::map<std::string, Shape> shapes;
  for (const Parameter& parameter : model.parameters()) shapes[parameter.name] = parameter.shape;
  return shapes;
}

/// What torchvision publishes of a network.
struct Published {
  const char* name;
  ModelFunction function;
  int64_t parameters;
  size_t tensors;  ///< parameters and running statistics
};

inline void expect_sizes(const Published& row) {
  const Model model(row.function, {3, 224, 224});
  EXPECT_EQ(model.parameter_count(), row.parameters) << row.name;
  EXPECT_EQ(model.parameters().size(), row.tensors) << row.name;
}

/// A network for 10 classes of square images of three channels.
struct Form {
  const char* name;
  ModelFunction function;
  int64_t size;
};

/// Ten updates on five waves, of three classes in turn.
inline void expect_falling_loss(const Form& form) {
  constexpr int64_t kBatch = 5;
  Tensor input({kBatch, 3, form.size, form.size}), target({kBatch}, DType::i64);
  for (int64_t i = 0; i < input.count(); ++i) input.data<float>()[i] = std::sin(static_cast<float>(i) * 1.37F);
  for (int64_t i = 0; i < kBatch; ++i) target.data<int64_t>()[i] = i % 3;
  Model model(form.function, {3, form.size, form.size});
  Step step(model, cross_entropy(), sgd({.learning_rate = 0.02, .momentum = 0.9}), {.batch = kBatch, .threads = 2});
  step.run(input, target);
  const double first = step.read().loss;
  for (int i = 0; i < 8; ++i) step.run(input, target);
  step.read();
  step.run(input, target);
  const double last = step.read().loss;
  EXPECT_NEAR(first, std::log(10), 1.5);
  EXPECT_LT(last, 0.7 * first);
}

}  // namespace brisk
