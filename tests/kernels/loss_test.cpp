// Losses over labels, accuracy, totals and seeds on the device against their definitions in double.
#include "brisk/kernels/loss.h"

#include <limits>

#include "kernels/values.h"
#include "support/error_text.h"

namespace brisk::kernels {
namespace {

using simt::DeviceBuffer;
using test::Values;

constexpr int64_t kIgnored = -100;

struct Case {
  size_t rows, classes;
  DType dtype = DType::f32;
  double smoothing = 0;
  bool weighted = false;
  size_t skew = 0;
  std::string text() const {
    return std::to_string(rows) + " x " + std::to_string(classes) + " " + name(dtype) + " smoothing " +
           std::to_string(smoothing) + (weighted ? " weighted" : "");
  }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : test::kFloatTypes) {
    all.push_back({5, 10, dtype});
    all.push_back({1, 1, dtype});
    all.push_back({19, 64, dtype, 0.1, true});
    all.push_back({9, 7, dtype, 0.2, false});
    all.push_back({3, 331, dtype, 0, true});
    all.push_back({3, 331, dtype, 0.1, true});
    all.push_back({1, 2056, dtype, 0.3, false});
    all.push_back({4, 16, dtype, 0, false, 1});
  }
  return all;
}

/// Labels and what they make of each row.
struct Targets {
  std::vector<int64_t> label;
  std::vector<float> class_weights;  ///< used by weighted cases
  std::vector<double> row_weight;
  std::vector<double> share;  ///< [rows, classes]
  std::vector<double> sum;    ///< of a row's shares
  std::vector<double> dloss;

  explicit Targets(const Case& c) : row_weight(c.rows), share(c.rows * c.classes), sum(c.rows) {
    test::Random random(7);
    class_weights = test::floats(test::random_numbers(c.classes, 8, 0.5, 2));
    if (c.classes > 2) class_weights[2] = 0;
    for (size_t r = 0; r < c.rows; ++r) {
      label.push_back(r % 5 == 2 ? kIgnored : random.below(static_cast<int64_t>(c.classes)));
      dloss.push_back(random.uniform(-2, 2));
      if (label[r] == kIgnored) continue;
      for (size_t k = 0; k < c.classes; ++k) {
        const double weight = c.weighted ? static_cast<double>(class_weights[k]) : 1;
        const bool chosen = static_cast<int64_t>(k) == label[r];
        share[r * c.classes + k] =
            weight * (c.smoothing / static_cast<double>(c.classes) + (chosen ? 1 - c.smoothing : 0));
        sum[r] += share[r * c.classes + k];
        if (chosen) row_weight[r] = weight;
      }
    }
  }
};

template <class Options>
Options options_of(const Case& c, const DeviceBuffer<int64_t>& labels, const DeviceBuffer<float>* weights) {
  Options o;
  o.class_weights = weights != nullptr ? weights->data() : nullptr;
  o.classes = static_cast<int64_t>(c.classes);
  o.dtype = c.dtype;
  o.label_smoothing = c.smoothing;
  o.labels = labels.data();
  o.rows = static_cast<int64_t>(c.rows);
  return o;
}

std::vector<double> log_softmax_of(const std::vector<double>& x, size_t classes) {
  std::vector<double> y(x.size());
  for (size_t first = 0; first < x.size(); first += classes) {
    double largest = -HUGE_VAL, sum = 0;
    for (size_t i = first; i < first + classes; ++i) largest = std::fmax(largest, x[i]);
    for (size_t i = first; i < first + classes; ++i) sum += std::exp(x[i] - largest);
    for (size_t i = first; i < first + classes; ++i) y[i] = x[i] - largest - std::log(sum);
  }
  return y;
}

/// -sum(share log p) of each row.
std::vector<double> losses_of(const Case& c, const Targets& t, const std::vector<double>& log_p) {
  std::vector<double> loss(c.rows);
  for (size_t i = 0; i < log_p.size(); ++i) {
    if (t.share[i] != 0) loss[i / c.classes] -= t.share[i] * log_p[i];
  }
  return loss;
}

TEST(KernelCrossEntropy, AgreesWithItsDefinition) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.text());
    const Targets t(c);
    const Values logits(c.dtype, test::random_numbers(c.rows * c.classes, 1, -6, 6), c.skew);
    const DeviceBuffer<int64_t> labels(t.label);
    const DeviceBuffer<float> weights(t.class_weights), dloss(test::floats(t.dloss));
    const DeviceBuffer<float>* const given = c.weighted ? &weights : nullptr;
    std::vector<double> low;
    const auto got = test::same_under_schedules([&]() -> std::vector<std::vector<double>> {
      DeviceBuffer<float> loss(c.rows), row_weight(c.rows);
      const Values p(c.dtype, c.rows * c.classes, c.skew), dx(c.dtype, c.rows * c.classes, c.skew);
      const DeviceBuffer<Status> status(std::vector<Status>{{}});
      auto o = options_of<SoftmaxCrossEntropyOptions>(c, labels, given);
      o.logits = logits.data(), o.loss = loss.data(), o.row_weight = row_weight.data(), o.probabilities = p.data();
      o.status = status.data();
      softmax_cross_entropy(o, nullptr);
      auto g = options_of<SoftmaxCrossEntropyGradientOptions>(c, labels, given);
      g.dloss = dloss.data(), g.probabilities = p.data(), g.dlogits = dx.data();
      softmax_cross_entropy_gradient(g, nullptr);
      EXPECT_EQ(status.download()[0].kind, Status::kNone);
      low = p.get();
      return {test::doubles(loss), test::doubles(row_weight), p.get(), dx.get()};
    });
    const std::vector<double> log_p = log_softmax_of(logits.given(), c.classes);
    std::vector<double> p(log_p.size()), dx(log_p.size());
    for (size_t i = 0; i < p.size(); ++i) {
      p[i] = std::exp(log_p[i]);
      const size_t r = i / c.classes;
      dx[i] = static_cast<double>(static_cast<float>(t.dloss[r])) * (t.sum[r] * low[i] - t.share[i]);
    }
    test::expect_near("loss", DType::f32, got[0], losses_of(c, t, log_p), 4e-5);
    test::expect_near("row weight", DType::f32, got[1], t.row_weight, 0);
    test::expect_near("probabilities", c.dtype, got[2], p, 2e-6);
    test::expect_near("dlogits", c.dtype, got[3], dx, 4e-6);

    // Without probabilities, and with them in the logits' place.
    DeviceBuffer<float> loss(c.rows), row_weight(c.rows);
    auto o = options_of<SoftmaxCrossEntropyOptions>(c, labels, given);
    o.logits = logits.data(), o.loss = loss.data(), o.row_weight = row_weight.data();
    softmax_cross_entropy(o, nullptr);
    EXPECT_EQ(test::doubles(loss), got[0]);
    const Values within(c.dtype, logits.given(), c.skew);
    o.logits = within.data(), o.probabilities = within.data();
    softmax_cross_entropy(o, nullptr);
    EXPECT_EQ(test::doubles(loss), got[0]);
    EXPECT_EQ(within.get(), got[2]);
  }
}

TEST(KernelLikelihood, AgreesWithItsDefinition) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.text());
    const Targets t(c);
    const Values log_p(c.dtype, test::random_numbers(c.rows * c.classes, 1, -6, 0), c.skew);
    const DeviceBuffer<int64_t> labels(t.label);
    const DeviceBuffer<float> weights(t.class_weights), dloss(test::floats(t.dloss));
    const DeviceBuffer<float>* const given = c.weighted ? &weights : nullptr;
    const auto got = test::same_under_schedules([&]() -> std::vector<std::vector<double>> {
      DeviceBuffer<float> loss(c.rows), row_weight(c.rows);
      const Values dx(c.dtype, c.rows * c.classes, c.skew);
      auto o = options_of<NegativeLogLikelihoodOptions>(c, labels, given);
      o.log_probabilities = log_p.data(), o.loss = loss.data(), o.row_weight = row_weight.data();
      negative_log_likelihood(o, nullptr);
      auto g = options_of<NegativeLogLikelihoodGradientOptions>(c, labels, given);
      g.dloss = dloss.data(), g.dx = dx.data();
      negative_log_likelihood_gradient(g, nullptr);
      return {test::doubles(loss), test::doubles(row_weight), dx.get()};
    });
    std::vector<double> dx(t.share.size());
    for (size_t i = 0; i < dx.size(); ++i) {
      dx[i] = -static_cast<double>(static_cast<float>(t.dloss[i / c.classes])) * t.share[i];
    }
    test::expect_near("loss", DType::f32, got[0], losses_of(c, t, log_p.given()), 4e-5);
    test::expect_near("row weight", DType::f32, got[1], t.row_weight, 0);
    test::expect_near("dx", c.dtype, got[2], dx, 1e-6);
  }
}

struct Losses {
  std::vector<double> loss, row_weight, gradient;
};

Losses cross_entropy(const std::vector<double>& logits, const std::vector<int64_t>& label, double smoothing = 0,
                     DType dtype = DType::f32) {
  const Case c{label.size(), logits.size() / label.size(), dtype, smoothing};
  const DeviceBuffer<int64_t> labels(label);
  const DeviceBuffer<float> ones(std::vector<float>(c.rows, 1));
  DeviceBuffer<float> loss(c.rows), row_weight(c.rows);
  const Values x(dtype, logits), p(dtype, logits.size()), dx(dtype, logits.size());
  auto o = options_of<SoftmaxCrossEntropyOptions>(c, labels, nullptr);
  o.logits = x.data(), o.loss = loss.data(), o.row_weight = row_weight.data(), o.probabilities = p.data();
  softmax_cross_entropy(o, nullptr);
  auto g = options_of<SoftmaxCrossEntropyGradientOptions>(c, labels, nullptr);
  g.dloss = ones.data(), g.probabilities = p.data(), g.dlogits = dx.data();
  softmax_cross_entropy_gradient(g, nullptr);
  return {test::doubles(loss), test::doubles(row_weight), dx.get()};
}

/// NU01: logits a thousand apart.
TEST(KernelCrossEntropy, NU01) {
  const double inf = HUGE_VAL;
  const Losses far = cross_entropy({1000, 0, -1000, 1000, 0, -1000, 1000, 0, -1000}, {0, 1, 2});
  EXPECT_EQ(far.loss, (std::vector<double>{0, 1000, 2000}));
  EXPECT_EQ(far.gradient, (std::vector<double>{0, 0, 0, 1, -1, 0, 1, 0, -1}));
  const Losses low = cross_entropy({1000, 0, -1000}, {2}, 0, DType::f16);
  EXPECT_EQ(low.loss, std::vector<double>{2000});
  EXPECT_EQ(low.gradient, (std::vector<double>{1, 0, -1}));
  const Losses others = cross_entropy({-431, 279, 427, 5, 5, 5, -inf, 2, -inf}, {2, 1, 1});
  test::expect_near("loss", DType::f32, others.loss, {0, std::log(3.0), 0}, 1e-7);
  test::expect_near("gradient", DType::f32, others.gradient, {0, 0, 0, 1.0 / 3, -2.0 / 3, 1.0 / 3, 0, 0, 0}, 1e-7);
}

/// NU02: the largest logit is a row's own.
TEST(KernelCrossEntropy, NU02) {
  const Losses got = cross_entropy({1000, 999, -1000, -1001}, {0, 0});
  test::expect_near("loss", DType::f32, got.loss, {0.313262, 0.313262}, 1e-6);
}

/// NU03: logits of 1e11.
TEST(KernelCrossEntropy, NU03) {
  const Losses got = cross_entropy({-2.88181912e11, -4.40300175e11}, {1});
  EXPECT_NEAR(got.loss[0], 1.52118263e11, 2e4);
}

/// NU04: the smoothed loss, and an ignored row that changes nothing.
TEST(KernelCrossEntropy, NU04) {
  EXPECT_NEAR(cross_entropy({2, 1, 0}, {0}).loss[0], 0.4076060, 1e-6);
  EXPECT_NEAR(cross_entropy({2, 1, 0}, {0}, 0.1).loss[0], 0.5076060, 1e-6);
  const Losses two = cross_entropy({2, 1, 0, 3, 3, 3}, {0, kIgnored}, 0.1);
  EXPECT_NEAR(two.loss[0], 0.5076060, 1e-6);
  EXPECT_EQ(two.loss[1], 0);
  EXPECT_EQ(two.row_weight, (std::vector<double>{1, 0}));
  for (size_t k = 3; k < 6; ++k) EXPECT_EQ(two.gradient[k], 0);
  const Losses none = cross_entropy({2, 1, 0}, {kIgnored}, 0.1);
  EXPECT_EQ(none.loss[0] + none.row_weight[0], 0);
}

TEST(KernelCrossEntropy, TheFirstBadLabelIsReportedAndItsRowIsZero) {
  for (const bool likelihood : {false, true}) {
    simt::for_each_schedule([&] {
      const size_t rows = 700;
      std::vector<int64_t> label(rows, 1);
      label[333] = 3, label[334] = -1, label[600] = std::numeric_limits<int64_t>::max(), label[0] = kIgnored;
      const Case c{rows, 3};
      const DeviceBuffer<int64_t> labels(label);
      const Values x(DType::f32, test::random_numbers(rows * 3, 1));
      DeviceBuffer<float> loss(rows), row_weight(rows);
      const DeviceBuffer<Status> status(std::vector<Status>{{}});
      const auto run = [&](int32_t node) {
        if (likelihood) {
          auto o = options_of<NegativeLogLikelihoodOptions>(c, labels, nullptr);
          o.log_probabilities = x.data(), o.loss = loss.data(), o.row_weight = row_weight.data();
          o.status = status.data(), o.node = node;
          negative_log_likelihood(o, nullptr);
        } else {
          auto o = options_of<SoftmaxCrossEntropyOptions>(c, labels, nullptr);
          o.logits = x.data(), o.loss = loss.data(), o.row_weight = row_weight.data();
          o.status = status.data(), o.node = node;
          softmax_cross_entropy(o, nullptr);
        }
      };
      run(17);
      run(18);  // later errors change nothing
      const Status got = status.download()[0];
      EXPECT_EQ(got.kind, Status::kLabel);
      EXPECT_EQ(got.node, 17);
      EXPECT_EQ(got.sample, 333);
      EXPECT_EQ(got.value, 3);
      const std::vector<double> losses = test::doubles(loss), weights = test::doubles(row_weight);
      for (const size_t row : {size_t{0}, size_t{333}, size_t{334}, size_t{600}}) {
        EXPECT_EQ(losses[row], 0) << row;
        EXPECT_EQ(weights[row], 0) << row;
      }
      EXPECT_GT(losses[335], 0);
    });
  }
}

TEST(KernelAccuracy, CountsTheFirstOfTheLargest) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DType dtype : test::kFloatTypes) {
    const Values x(dtype, {1, 3, 3, 3, 3, 1, 0, nan, 5, -HUGE_VAL, -HUGE_VAL, -HUGE_VAL, 1, 2, 3, 1, 2, 3});
    const DeviceBuffer<int64_t> labels(std::vector<int64_t>{1, 1, 2, 0, kIgnored, 9});
    DeviceBuffer<float> correct(6), row_weight(6);
    accuracy({.classes = 3,
              .correct = correct.data(),
              .dtype = dtype,
              .labels = labels.data(),
              .logits = x.data(),
              .row_weight = row_weight.data(),
              .rows = 6},
             nullptr);
    EXPECT_EQ(test::doubles(correct), (std::vector<double>{1, 0, 0, 1, 0, 0}));
    EXPECT_EQ(test::doubles(row_weight), (std::vector<double>{1, 1, 1, 1, 0, 1}));
  }
  for (const size_t classes : {size_t{64}, size_t{1003}, size_t{4096}}) {
    const size_t rows = 7;
    const Values x(DType::f16, test::random_numbers(rows * classes, 3, -1, 1));
    std::vector<int64_t> label;
    for (size_t r = 0; r < rows; ++r) {
      const auto begin = x.given().begin() + static_cast<int64_t>(r * classes);
      label.push_back(std::max_element(begin, begin + static_cast<int64_t>(classes)) - begin);
    }
    label[3] = (label[3] + 1) % static_cast<int64_t>(classes);
    const DeviceBuffer<int64_t> labels(label);
    simt::for_each_schedule(
        [&] {
          DeviceBuffer<float> correct(rows), row_weight(rows);
          accuracy({.classes = static_cast<int64_t>(classes),
                    .correct = correct.data(),
                    .dtype = DType::f16,
                    .labels = labels.data(),
                    .logits = x.data(),
                    .row_weight = row_weight.data(),
                    .rows = static_cast<int64_t>(rows)},
                   nullptr);
          EXPECT_EQ(test::doubles(correct), (std::vector<double>{1, 1, 1, 0, 1, 1, 1}));
        },
        3);
  }
}

TEST(KernelTotal, AddsInDouble) {
  for (const size_t rows : {size_t{1}, size_t{67}, size_t{5000}}) {
    std::vector<double> numbers = test::random_numbers(rows, 1, 0, 1);
    numbers[0] = 3e7;  // an f32 sum would lose the others
    const DeviceBuffer<float> term(test::floats(numbers)), weight(test::floats(test::random_numbers(rows, 2, 0, 1)));
    double sum = 0, weights = 0;
    for (const double x : test::doubles(term)) sum += x;
    for (const double x : test::doubles(weight)) weights += x;
    simt::for_each_schedule(
        [&] {
          DeviceBuffer<double> totals(2);
          TotalOptions o{.rows = static_cast<int64_t>(rows), .term = term.data(), .totals = totals.data()};
          total(o, nullptr);
          EXPECT_NEAR(totals.download()[0], sum, 1e-7);
          EXPECT_EQ(totals.download()[1], static_cast<double>(rows));
          o.row_weight = weight.data(), o.accumulate = true;
          total(o, nullptr);
          EXPECT_NEAR(totals.download()[0], 2 * sum, 2e-7);
          EXPECT_NEAR(totals.download()[1], static_cast<double>(rows) + weights, 1e-9);
        },
        3);
  }
}

TEST(KernelSeeds, AreTheSeedTimesTheScale) {
  const DeviceBuffer<float> seed(std::vector<float>{0.25F}), scale(std::vector<float>{65536});
  DeviceBuffer<float> seeds(300);
  seed_rows({.rows = 300, .seed = seed.data(), .seeds = seeds.data()}, nullptr);
  EXPECT_EQ(test::doubles(seeds), std::vector<double>(300, 0.25));
  seed_rows({.loss_scale = scale.data(), .rows = 300, .seed = seed.data(), .seeds = seeds.data()}, nullptr);
  EXPECT_EQ(test::doubles(seeds), std::vector<double>(300, 16384));

  const DeviceBuffer<float> weight(std::vector<float>{1, 0, 0.5, 1}), none(std::vector<float>{0, 0});
  DeviceBuffer<float> one(1);
  seed_count({.factor = 5, .row_weight = weight.data(), .rows = 4, .seed = one.data()}, nullptr);
  EXPECT_EQ(test::doubles(one), std::vector<double>{2});
  seed_count({.factor = 5, .row_weight = none.data(), .rows = 2, .seed = one.data()}, nullptr);
  EXPECT_EQ(test::doubles(one), std::vector<double>{0});
}

TEST(KernelCrossEntropy, RefusesWhatItCannotDo) {
  EXPECT_EQ(test::error_text([] { softmax_cross_entropy({.classes = 0, .rows = 1}, nullptr); }),
            "Error [option] kernels::softmax_cross_entropy.classes = 0: must be from 1 to 2^31 - 1");
  EXPECT_EQ(test::error_text([] { negative_log_likelihood({.classes = 2, .label_smoothing = 2, .rows = 1}, nullptr); }),
            "Error [option] kernels::negative_log_likelihood.label_smoothing = 2: must be from 0 to 1");
  EXPECT_EQ(test::error_text([] { total({.rows = 0}, nullptr); }),
            "Error [option] kernels::total.rows = 0: must be 1 or more");
}

}  // namespace
}  // namespace brisk::kernels
