// Two programs as their users write them: regression with metrics of its own, and callbacks beside a logger of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "brisk/brisk.h"
#include "train_support.h"

namespace brisk {
namespace {

std::vector<double> ranks(const float* values, int64_t n) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return values[a] < values[b]; });
  std::vector<double> out(order.size());
  for (size_t i = 0; i < order.size(); ++i) out[static_cast<size_t>(order[i])] = static_cast<double>(i);
  return out;
}

/// Rank correlation of two columns without ties.
double spearman(ConstView out, ConstView target) {
  const int64_t n = out.dim(0);
  const std::vector<double> a = ranks(out.data<float>(), n), b = ranks(target.data<float>(), n);
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  const auto count = static_cast<double>(n);
  return 1 - 6 * sum / (count * (count * count - 1));
}

TEST(Stories, RegressionOnTabularData) {
  const int64_t n = 600;
  std::vector<float> x(static_cast<size_t>(n * 13)), y(static_cast<size_t>(n));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i) + 0.2));
  for (size_t i = 0; i < y.size(); ++i) y[i] = 3 + x[13 * i] - 0.5f * x[13 * i + 5] * x[13 * i + 2];
  InMemoryDataset all;
  all.add("input", Tensor(std::move(x), {n, 13}));  // the vector is adopted
  all.add("target", Tensor(std::move(y), {n, 1}));
  auto [train, test] = all.split({.first = 0.8, .seed = 7});
  Model model([](Var v) { return linear(silu(linear(silu(linear(v, 64)), 64)), 1); }, {13});
  Trainer trainer(model, mse(), adamw({.learning_rate = 1e-3}), {.batch = 32});
  trainer.add_metric("mape", [](Var out, Var target) { return sample_mean(abs((out - target) / target)); });
  Tensor targets;  // of the last evaluation
  trainer.add_host_metric("spearman", [&](ConstView out, ConstView target) {
    targets = Tensor(target);
    return spearman(out, target);
  });
  const FitResult result = trainer.fit(train, test,
                                       {.duration = 200_epochs,
                                        .early_stop = {.monitor = lowest("mape"), .patience = 20, .target = 0.05},
                                        .progress = false});
  EXPECT_EQ(result.reason, StopReason::target_reached) << result.text();
  EXPECT_LE(result.best.metric("mape"), 0.05);
  EXPECT_GT(result.best.metric("spearman"), 0.9);

  // Predictions are what the evaluation saw.
  const Tensor out = trainer.predict(test);
  EXPECT_EQ(out.shape(), (Shape{120, 1}));
  double mape = 0;
  for (int64_t i = 0; i < 120; ++i) {
    const float t = targets.data<float>()[i];
    mape += std::abs((out.data<float>()[i] - t) / t) / 120;
  }
  EXPECT_NEAR(mape, result.evaluation.metric("mape"), 1e-5);
  EXPECT_NE(error_text([&, &set = test] {
              trainer.predict(set, "price");
            }).find("must be one of the model's outputs: output"),
            std::string::npos);
  InMemoryDataset without;
  without.add("input", Tensor({3, 13}));
  EXPECT_EQ(trainer.predict(without, "output").dim(0), 3);
}

struct Robot {
  double charge = 1;
  double battery() { return charge -= 0.1; }
};

TEST(Stories, CallbacksAndTheProgramsOwnLogger) {
  std::vector<std::string> my_log;
  Robot robot;
  std::vector<std::pair<double, double>> plot;
  Model model([](Var x) { return linear(x, 2); }, {2});
  InMemoryDataset data;
  data.add("input", Tensor(std::vector<float>{1, 0, 0, 1, 1, 0.5f, 0.25f, 1}, {4, 2}));
  data.add("target", Tensor(std::vector<int64_t>{0, 1, 0, 1}, {4}));
  Trainer trainer(model, cross_entropy(), sgd({.learning_rate = 0.5}), {.batch = 2});
  trainer.add_metric("accuracy", accuracy());
  set_logger([&](LogLevel level, std::string_view line) {
    my_log.push_back(std::to_string(static_cast<int>(level)) + " " + std::string(line));
  });
  trainer.on_update(
      [&](const UpdateReport& r, Control& control) {
        EXPECT_GT(r.samples_per_s, 0);
        if (robot.battery() < 0.55) control.stop("battery");
      },
      {.every = 10_updates});
  trainer.on_evaluation(
      [&](const EvaluationReport& r, Control&) { plot.emplace_back(r.clock.epochs, r.metric("accuracy")); });
  const FitResult result = trainer.fit(data, data, {.duration = 1000_epochs, .evaluate_every = 5_epochs});
  set_logger({});
  EXPECT_EQ(result.reason, StopReason::requested);
  EXPECT_EQ(result.message, "battery");
  EXPECT_EQ(result.clock.updates, 50);
  EXPECT_EQ(plot.size(), 5U);
  EXPECT_EQ(plot.back(), (std::pair<double, double>(25, 1)));
  EXPECT_NE(my_log.back().find("requested: 25 epochs, 50 updates"), std::string::npos) << my_log.back();
}

}  // namespace
}  // namespace brisk
