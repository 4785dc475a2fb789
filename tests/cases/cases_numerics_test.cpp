// Numerical accidents that other libraries have had, each by its number, on every implementation of the operation that
// it happened in. Values that a wrong formula gives are named beside the right one.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>

#include "cases/table.h"

namespace brisk::test {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
using Numbers = std::vector<double>;

/// Runs the node on every candidate, preferred or not, and instruction set, and hands each outcome to `check`. Kernels
/// for one sample are no matter of preference: they take a batch of 1 alone.
void on_each(const NodeCase& node_case, const std::function<void(const Outcome&)>& check) {
  int ran = 0;
  for (const cpu::Implementation* implementation : implementations(node_case.op)) {
    if (!implementation->lower) continue;  // built without its library
    cpu::Implementation forced = *implementation;
    if (forced.name != cpu::kSingle) forced.declines = nullptr;
    for (const cpu::Isa isa : instruction_sets()) {
      SCOPED_TRACE(node_case.op + " " + std::string(forced.name) + " " + name(isa));
      const Outcome outcome = run_node(node_case, forced, isa);
      if (!outcome.declined.empty()) continue;
      EXPECT_EQ(outcome.problems, std::vector<std::string>());
      check(outcome);
      ++ran;
    }
  }
  EXPECT_GT(ran, 0) << node_case.op;
}

const Numbers& data(const Outcome& outcome, size_t output = 0) { return outcome.outputs[output].data; }

void expect_near(const Numbers& got, const Numbers& want, double error) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], error) << "element " << i;
}

Attributes loss_options(double label_smoothing = 0, int64_t ignore_index = -100) {
  return {{"class_weights", Numbers()}, {"ignore_index", ignore_index}, {"label_smoothing", label_smoothing}};
}

/// Rows of logits with their labels.
NodeCase cross_entropy(const Numbers& logits, const Numbers& labels, Attributes options = loss_options()) {
  const auto samples = static_cast<int64_t>(labels.size());
  const int64_t classes = static_cast<int64_t>(logits.size()) / samples;
  return {
      "softmax_cross_entropy", std::move(options), {{b({classes}), logits}, {b({}, 1, DType::i64), labels}}, samples};
}

/// The gradient of the sum of all rows' losses, from what the forward node kept.
NodeCase cross_entropy_gradient(const NodeCase& forward, const Outcome& outcome) {
  const Numbers ones(forward.inputs[1].data.size(), 1.0);
  return {"softmax_cross_entropy_gradient",
          forward.attributes,
          {{b({}), ones}, forward.inputs[1], {forward.inputs[0].type, data(outcome, 2)}},
          forward.samples};
}

/// The same loss in two steps: log_softmax, then the likelihood.
void on_two_steps(const NodeCase& forward, const std::function<void(const Numbers&)>& check) {
  on_each({"log_softmax", {{"axis", int64_t{0}}}, {forward.inputs[0]}, forward.samples},
          [&](const Outcome& log_softmax) {
            on_each({"negative_log_likelihood",
                     forward.attributes,
                     {{forward.inputs[0].type, data(log_softmax)}, forward.inputs[1]},
                     forward.samples},
                    [&](const Outcome& likelihood) { check(data(likelihood)); });
          });
}

void expect_losses(const NodeCase& forward, const Numbers& want, double error) {
  on_each(forward, [&](const Outcome& outcome) { expect_near(data(outcome), want, error); });
  on_two_steps(forward, [&](const Numbers& losses) { expect_near(losses, want, error); });
}

void expect_gradient(const NodeCase& forward, const Numbers& want, double error) {
  on_each(forward, [&](const Outcome& outcome) {
    on_each(cross_entropy_gradient(forward, outcome),
            [&](const Outcome& gradient) { expect_near(data(gradient), want, error); });
  });
}

// Logits far apart: the largest is taken out before the exponential.
TEST(Cases, NU01_softmax_shift) {
  const NodeCase far_apart = cross_entropy({1000, 0, -1000, 1000, 0, -1000, 1000, 0, -1000}, {0, 1, 2});
  expect_losses(far_apart, {0, 1000, 2000}, 1e-4);
  expect_gradient(far_apart, {0, 0, 0, 1, -1, 0, 1, 0, -1}, 1e-6);
  expect_gradient(cross_entropy({1000, 0, -1000}, {2}), {1, 0, -1}, 1e-6);
  const NodeCase uneven = cross_entropy({-431, 279, 427}, {0});
  expect_losses(uneven, {427 + 431}, 1e-4);
  expect_gradient(uneven, {-1, 0, 1}, 1e-6);
  const NodeCase equal = cross_entropy({5, 5, 5}, {1});
  expect_losses(equal, {std::log(3.0)}, 1e-6);
  expect_gradient(equal, {1.0 / 3, 1.0 / 3 - 1, 1.0 / 3}, 1e-6);
  const NodeCase one_finite = cross_entropy({-kInf, 7, -kInf}, {1});
  expect_losses(one_finite, {0}, 1e-6);
  expect_gradient(one_finite, {0, 0, 0}, 1e-6);
}

// The largest logit of the row, not of the batch.
TEST(Cases, NU02_softmax_maximum_of_the_row) {
  expect_losses(cross_entropy({1000, 999, -1000, -1001}, {0, 0}), {0.313262, 0.313262}, 1e-6);
}

// Huge but finite logits.
TEST(Cases, NU03_huge_logits) {
  const NodeCase huge = cross_entropy({-2.88181912e11, -4.40300175e11}, {1});
  expect_losses(huge, {1.52118263e11}, 2e4);
  on_each(huge, [](const Outcome& outcome) {
    char printed[32];
    std::snprintf(printed, sizeof printed, "%.8e", data(outcome)[0]);
    EXPECT_STREQ(printed, "1.52118264e+11");
    EXPECT_EQ(static_cast<float>(data(outcome)[0]), 1.52118264e11f);
  });
}

// Label smoothing spreads eps over all K classes, and a row that is ignored adds nothing.
TEST(Cases, NU04_label_smoothing) {
  constexpr double kSmoothed = 0.5076060, kHard = 0.4076060, kWithoutTheLabel = 0.5576060;
  const int64_t K = 3;
  const double eps = 0.1;
  const Numbers logits = {2, 1, 0};
  ASSERT_EQ(static_cast<int64_t>(logits.size()), K);
  expect_losses(cross_entropy(logits, {0}, loss_options(eps)), {kSmoothed}, 1e-6);
  expect_losses(cross_entropy(logits, {0}), {kHard}, 1e-6);
  EXPECT_GT(std::fabs(kSmoothed - kWithoutTheLabel), 0.04);  // eps * K / (K - 1): a wrong formula is told apart
  const NodeCase with_ignored = cross_entropy({2, 1, 0, 9, -9, 3}, {0, -100}, loss_options(eps));
  on_each(with_ignored, [&](const Outcome& outcome) {
    expect_near(data(outcome, 0), {kSmoothed, 0}, 1e-6);
    expect_near(data(outcome, 1), {1, 0}, 0);
    on_each({"total", {{"slot", int64_t{0}}}, {{b({}), data(outcome, 0)}, {b({}), data(outcome, 1)}}, 2},
            [&](const Outcome& total) { EXPECT_NEAR(data(total)[0] / data(total)[1], kSmoothed, 1e-6); });
  });
  on_each(with_ignored, [&](const Outcome& outcome) {
    on_each(cross_entropy_gradient(with_ignored, outcome), [](const Outcome& gradient) {
      EXPECT_NE(data(gradient)[0], 0);
      for (size_t c = 3; c < 6; ++c) EXPECT_EQ(data(gradient)[c], 0) << c;
    });
  });
  const NodeCase all_ignored = cross_entropy({2, 1, 0, 9, -9, 3}, {-100, -100}, loss_options(eps));
  expect_losses(all_ignored, {0, 0}, 0);
  expect_gradient(all_ignored, {0, 0, 0, 0, 0, 0}, 0);
  on_each({"seed_count", {{"factor", 1.0}}, {{b({}), {0, 0}}}, 2},
          [](const Outcome& seed) { EXPECT_EQ(data(seed)[0], 0); });
}

// The variance that is kept is the unbiased one.
TEST(Cases, NU06_batch_norm_running_variance) {
  const double momentum = 0.1, eps = 1e-5, mean = 0, var = 1;
  const NodeCase norm = {"batch_norm",
                         {{"activation", std::string("none")}, {"epsilon", eps}, {"momentum", momentum}},
                         {{b({1}), {1, 2, 3, 4}},
                          {p({1}), {1}},
                          {p({1}), {0}},
                          {p({1}), {mean}, Place::buffer, 0},
                          {p({1}), {var}, Place::buffer, 1}},
                         4};
  on_each(norm, [&](const Outcome& outcome) {
    expect_near(data(outcome), {-1.341635, -0.447212, 0.447212, 1.341635}, 1e-6);
    on_each({"batch_norm_commit",
             {{"chained", false}, {"momentum", momentum}},
             {{p({1}), data(outcome, 1)}, {p({1}), data(outcome, 3)}, norm.inputs[3], norm.inputs[4]},
             4},
            [](const Outcome& running) {
              EXPECT_NEAR(data(running, 0)[0], 0.25, 1e-7);
              EXPECT_NEAR(data(running, 1)[0], 1.0666667, 1e-6);
              EXPECT_GT(std::fabs(data(running, 1)[0] - 1.025), 0.04);  // what the biased variance gives
            });
  });
}

NodeCase pooling(const std::string& op, const ValueType& type, const Numbers& x, std::vector<int64_t> k,
                 std::vector<int64_t> s, std::vector<int64_t> p) {
  return {op, {{"kernel", std::move(k)}, {"stride", std::move(s)}, {"padding", std::move(p)}}, {{type, x}}, 1};
}

// Padding is no element: it never wins a maximum.
TEST(Cases, NU08_max_pool_padding) {
  const int64_t k = 2, s = 2, p = 1;
  const Numbers x = {-1, -2, -3, -4};  // [[-1,-2],[-3,-4]]
  on_each(pooling("max_pool2d", b({1, 2, 2}), x, {k, k}, {s, s}, {p, p}), [&](const Outcome& outcome) {
    expect_near(data(outcome), {-1, -2, -3, -4}, 0);
    expect_near(data(outcome, 1), {0, 1, 2, 3}, 0);
  });
  for (const std::string op : {"max_pool2d", "avg_pool2d"}) {
    for (int64_t padding = k / 2 + 1; padding <= k + 2; ++padding) {
      EXPECT_THROW(build(pooling(op, b({1, 2, 2}), x, {k, k}, {s, s}, {padding, padding})), Error) << op << padding;
    }
    EXPECT_THROW(build(pooling(op, b({1, 5, 5}), Numbers(25), {3, 3}, {s, s}, {p, 2})), Error) << op;
  }
}

// Windows of NaN or -inf choose one of their own elements; of equal ones the first gets the whole gradient.
TEST(Cases, NU09_max_pool_nan_and_ties) {
  const std::vector<int64_t> k = {1, 2};
  const Numbers x = {kNaN, 1, kNaN, kNaN, -kInf, -kInf, 3, 3};  // [NaN,1],[NaN,NaN],[-inf,-inf]; ties [3,3]
  const NodeCase pool = pooling("max_pool2d", b({1, 1, 8}), x, k, k, {0, 0});
  on_each(pool, [&](const Outcome& outcome) {
    EXPECT_TRUE(std::isnan(data(outcome)[0]));
    EXPECT_TRUE(std::isnan(data(outcome)[1]));
    EXPECT_EQ(data(outcome)[2], -kInf);
    EXPECT_EQ(data(outcome)[3], 3);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_GE(data(outcome, 1)[i], 2 * static_cast<double>(i)) << "window " << i;
      EXPECT_LE(data(outcome, 1)[i], 2 * static_cast<double>(i) + 1) << "window " << i;
    }
    EXPECT_EQ(data(outcome, 1)[0], 0);
    EXPECT_EQ(data(outcome, 1)[3], 6);
    Attributes attributes = pool.attributes;
    attributes.set("input", std::vector<int64_t>{1, 1, 8});
    on_each({"max_pool2d_gradient",
             attributes,
             {{b({1, 1, 4}), {1, 1, 1, 1}}, {b({1, 1, 4}, 1, DType::i32), data(outcome, 1)}},
             1},
            [](const Outcome& gradient) {
              const Numbers& dx = data(gradient);
              for (size_t i = 0; i < 8; i += 2) EXPECT_EQ(dx[i] + dx[i + 1], 1) << "window " << i / 2;
              EXPECT_EQ(dx[6], 1);
              EXPECT_EQ(dx[7], 0);
            });
  });
}

void expect_relu(const NodeCase& node_case) {
  on_each(node_case, [](const Outcome& outcome) {
    for (size_t i = 0; i < data(outcome).size(); ++i) {
      const double y = data(outcome)[i];
      EXPECT_TRUE(i % 3 == 0 ? std::isnan(y) : i % 3 == 1 ? y == kInf : y == 0) << "element " << i << " is " << y;
    }
  });
}

// relu keeps NaN: in whole vectors, in tails, and where it is fused into other operations.
TEST(Cases, NU10_relu_keeps_nan) {
  for (int64_t length = 1; length <= 67; ++length) {
    SCOPED_TRACE("length " + std::to_string(length));
    Numbers x;
    for (int64_t i = 0; i < length; ++i) x.push_back(i % 3 == 0 ? kNaN : i % 3 == 1 ? kInf : -kInf);
    expect_relu({"relu", {}, {{b({}), x}}, length});
    expect_relu({"relu", {}, {{p({length}), x}}, 1});
    if (length % 16 != 3) continue;
    expect_relu(
        {"linear", {{"activation", std::string("relu")}}, {{b({1}), x}, {p({1, 1}), {1}}, {p({1}), {0}}}, length});
    expect_relu({"conv2d",
                 {{"activation", std::string("relu")},
                  {"stride", std::vector<int64_t>{1, 1}},
                  {"padding", std::vector<int64_t>{0, 0}},
                  {"dilation", std::vector<int64_t>{1, 1}},
                  {"groups", int64_t{1}}},
                 {{b({1, 1, 1}), x}, {p({1, 1, 1, 1}), {1}}, {p({1}), {0}}},
                 length});
    expect_relu(
        {"batch_norm_inference",
         {{"activation", std::string("relu")}, {"epsilon", 1e-5}},
         {{b({1}), x}, {p({1}), {1}}, {p({1}), {0}}, {p({1}), {0}, Place::buffer, 0}, {p({1}), {1}, Place::buffer, 1}},
         length});
  }
}

/// One parameter of one element that takes updates one after another.
struct Walk {
  std::string op;
  Attributes attributes;
  double w;
  Numbers moments;

  /// Scalars come before the statistics, in the op's order. Returns the new w, the same on every implementation.
  double update(const Numbers& scalars, double g) {
    NodeCase walk{op, attributes, {}, 1};
    for (size_t i = 0; i < scalars.size(); ++i) {
      walk.inputs.push_back({p({}), {scalars[i]}, Place::scalar, static_cast<int32_t>(i)});
    }
    walk.inputs.push_back({p({4}), {std::fabs(g), 0, 1, -1}});
    walk.inputs.push_back({p({1}), {w}, Place::parameter, 0});
    walk.inputs.push_back({p({1}), {g}, Place::gradient, 0});
    const Place places[] = {Place::moment1, Place::moment2};
    for (size_t i = 0; i < moments.size(); ++i) walk.inputs.push_back({p({1}), {moments[i]}, places[i], 0});
    const double before = w;
    const Numbers moments_before = moments;
    on_each(walk, [&](const Outcome& outcome) {
      if (w != before || moments != moments_before) {
        EXPECT_NEAR(data(outcome)[0], w, 1e-7 * std::fabs(w));
      }
      w = data(outcome)[0];
      for (size_t i = 0; i < moments.size(); ++i) moments[i] = data(outcome, 1 + i)[0];
    });
    return w;
  }
};

Walk sgd(double w, double wd, double mu, double dampening) {
  return {"sgd_walk",
          {{"dampening", dampening},
           {"momentum", mu},
           {"nesterov", false},
           {"rate_scale", Numbers{1}},
           {"shadow", std::string("none")},
           {"shadowed", std::vector<int64_t>()},
           {"weight_decay", Numbers{wd}}},
          w,
          mu != 0 ? Numbers{0} : Numbers{}};
}

Walk adam(double w, double eps, double wd, bool decoupled) {
  return {"adam_walk",
          {{"beta1", .9},
           {"beta2", .999},
           {"decoupled", decoupled},
           {"epsilon", eps},
           {"rate_scale", Numbers{1}},
           {"shadow", std::string("none")},
           {"shadowed", std::vector<int64_t>()},
           {"weight_decay", Numbers{wd}}},
          w,
          {0, 0}};
}

/// Rate, ratio and the bias corrections of the first update.
Numbers first_update(double lr) { return {lr, 1, 1 - .9, 1 - .999}; }

// Epsilon is added to the corrected square root.
TEST(Cases, OP01_adam_epsilon) {
  const double w = 0, g = 1e-8, lr = 1e-3, eps = 1e-8;
  const double got = adam(w, eps, 0, false).update(first_update(lr), g);
  EXPECT_NEAR(got, -5.0e-4, 1e-9);
  EXPECT_GT(std::fabs(got - -3.065e-5), 1e-4);  // epsilon before the correction
  EXPECT_GT(std::fabs(got - -1.0e-7), 1e-4);    // epsilon inside the root
}

// AdamW's decay does not pass through the gradient.
TEST(Cases, OP03_adamw_decay_is_decoupled) {
  const double w = 1, g = 0, lr = 0.1, wd = 0.1;
  EXPECT_NEAR(adam(w, 1e-8, wd, true).update(first_update(lr), g), 0.99, 1e-7);
  EXPECT_NEAR(adam(w, 1e-8, wd, false).update(first_update(lr), g), 0.90, 1e-6);  // the L2 form
}

// The decay applies to the weight as it was before the update.
TEST(Cases, OP04_adamw_decays_first) {
  const double w = 2, g = 1, lr = 0.1, wd = 0.5, eps = 1e-8;
  const double got = adam(w, eps, wd, true).update(first_update(lr), g);
  EXPECT_NEAR(got, 1.8 + 1e-9, 3e-7);
  EXPECT_GT(std::fabs(got - 1.805), 0.004);
}

// Decay without momentum, and no dampening of a parameter's first update.
TEST(Cases, OP05_sgd_decay_and_dampening) {
  {
    const double w = 1, g = 0, lr = .1, wd = .1, mu = 0;
    EXPECT_NEAR(sgd(w, wd, mu, 0).update({lr, 1, 1}, g), 0.99, 1e-7);
  }
  const double g = 1, lr = .1, mu = .9, dampening = .5;
  Walk walk = sgd(1, 0, mu, dampening);
  for (const double want : {0.9, 0.76, 0.584}) {
    EXPECT_NEAR(walk.update({lr, 1, want == 0.9 ? 1.0 : 0.0}, g), want, 2e-7);
  }
}

// Momentum lives from update to update.
TEST(Cases, OP07_sgd_momentum_is_kept) {
  const double w = 1, g = 1, lr = .1;
  const std::vector<std::pair<double, Numbers>> runs = {{0, {0.9, 0.8, 0.7, 0.6, 0.5}},
                                                        {0.9, {0.9, 0.71, 0.439, 0.0951, -0.31441}}};
  for (const auto& [mu, wanted] : runs) {
    ASSERT_EQ(wanted.size(), 5u);
    Walk walk = sgd(w, 0, mu, 0);
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_NEAR(walk.update({lr, 1, i == 0 ? 1.0 : 0.0}, g), wanted[i], 5e-7) << "mu " << mu << " update " << i;
    }
  }
}

// A label outside the classes is an error that names its row, never a loss.
TEST(Cases, DA05_labels_out_of_range) {
  const Numbers logits = {2.5, 0, 0, 0, 0, 2.5};  // [[2.5,0,0],[0,0,2.5]]
  const double classes = 3, ignored = -100;
  for (const double label : {1000.0, -1.0, classes, static_cast<double>(INT64_MIN)}) {
    SCOPED_TRACE(label);
    const NodeCase forward = cross_entropy(logits, {0, label});
    const auto expect_fault = [&](const Outcome& outcome) {
      EXPECT_EQ(outcome.status, cpu::Status::label);
      EXPECT_EQ(outcome.sample, 1);
      EXPECT_EQ(static_cast<double>(outcome.value), label);
    };
    on_each(forward, expect_fault);
    on_each({"negative_log_likelihood", loss_options(), {forward.inputs[0], forward.inputs[1]}, 2}, expect_fault);
  }
  // An ignored row does not count: the mean is the other row's loss, not the half of it, 0.0760.
  on_each(cross_entropy(logits, {0, ignored}), [](const Outcome& outcome) {
    EXPECT_EQ(outcome.status, cpu::Status::none);
    const double mean = (data(outcome)[0] + data(outcome)[1]) / (data(outcome, 1)[0] + data(outcome, 1)[1]);
    EXPECT_NEAR(mean, 0.1520, 1e-4);
    EXPECT_GT(std::fabs(mean - 0.0760), 0.07);
  });
  // Only the configured value is ignored.
  on_each(cross_entropy(logits, {0, ignored}, loss_options(0, -1)),
          [](const Outcome& outcome) { EXPECT_EQ(outcome.status, cpu::Status::label); });
}

}  // namespace
}  // namespace brisk::test
