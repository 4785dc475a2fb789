// The update: statistics, walks, staged buffers, against the same formulas in double.
#include "brisk/kernels/optimizer.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "brisk/error.h"
#include "kernels/elements.h"

namespace brisk::kernels {
namespace {

using Floats = std::vector<float>;
using Device = simt::DeviceBuffer<float>;

Floats random_floats(size_t count, unsigned seed, double low = -1, double high = 1) {
  const std::vector<double> values = random_values(count, seed, low, high);
  return {values.begin(), values.end()};
}

std::vector<double> doubles(const Floats& values) { return {values.begin(), values.end()}; }

/// Tensors and their table on the device. All moments, averages and shadows are there.
class Tensors {
 public:
  explicit Tensors(const std::vector<Floats>& gradients, int offset = 0) {
    for (size_t k = 0; k < gradients.size(); ++k) {
      const size_t count = gradients[k].size();
      Tensor t;
      t.parameter.emplace(DType::f32, doubles(random_floats(count, static_cast<unsigned>(10 + k))), offset);
      t.gradient.emplace(DType::f32, doubles(gradients[k]), offset);
      t.moment1.emplace(DType::f32, doubles(random_floats(count, static_cast<unsigned>(20 + k))), offset);
      t.moment2.emplace(DType::f32, doubles(random_floats(count, static_cast<unsigned>(30 + k), 0.01, 1)), offset);
      t.average.emplace(DType::f32, doubles(random_floats(count, static_cast<unsigned>(40 + k))), offset);
      t.shadow.emplace(k % 2 == 0 ? DType::f16 : DType::bf16, std::vector<double>(count, 9), offset);
      table_.push_back({.count = static_cast<int64_t>(count),
                        .average = t.average->data<float>(),
                        .gradient = t.gradient->data<float>(),
                        .moment1 = t.moment1->data<float>(),
                        .moment2 = t.moment2->data<float>(),
                        .parameter = t.parameter->data<float>(),
                        .rate_scale = k % 2 == 0 ? 1.0f : 0.5f,
                        .shadow = t.shadow->data(),
                        .shadow_type = t.shadow->dtype(),
                        .slot = static_cast<int64_t>(100 + k),
                        .weight_decay = k % 3 == 0 ? 0.1f : 0.0f});
      tensors.push_back(std::move(t));
    }
    chunks = number_chunks(std::span(table_));
    device_.emplace(table_);
  }
  const UpdateTensor* table() const { return device_->data(); }
  const UpdateTensor& entry(size_t k) const { return table_[k]; }
  int64_t size() const { return static_cast<int64_t>(table_.size()); }

  /// Values of everything that a walk may change.
  std::vector<std::vector<double>> state() const {
    std::vector<std::vector<double>> all;
    for (const Tensor& t : tensors) {
      for (const auto* part : {&t.parameter, &t.moment1, &t.moment2, &t.average, &t.shadow}) {
        all.push_back((*part)->values());
      }
    }
    return all;
  }

  struct Tensor {
    std::optional<Elements> parameter, gradient, moment1, moment2, average, shadow;
  };
  std::vector<Tensor> tensors;
  int64_t chunks = 0;

 private:
  std::vector<UpdateTensor> table_;
  std::optional<simt::DeviceBuffer<UpdateTensor>> device_;
};

std::vector<Floats> some_gradients(double scale = 1) {
  std::vector<Floats> gradients;
  unsigned seed = 0;
  for (const size_t count : {1, 5, 0, 4096, 4099, 37, 9001}) {
    gradients.push_back(random_floats(count, ++seed, -scale, scale));
  }
  return gradients;
}

struct StatsResult {
  float norm, nonfinite, factor, bad_tensor;
};

StatsResult stats_of(const Tensors& tensors, GradientStatsOptions options = {}) {
  const simt::DeviceBuffer<uint8_t> workspace(static_cast<size_t>(gradient_stats_workspace_bytes(tensors.chunks)));
  const Device stats(4);
  options.chunks = tensors.chunks;
  options.stats = stats.data();
  options.table = tensors.table();
  options.tensors = tensors.size();
  options.workspace = workspace.data();
  options.workspace_bytes = static_cast<int64_t>(workspace.size());
  gradient_stats(options, nullptr);
  const Floats values = stats.download();
  return {values[0], values[1], values[2], values[3]};
}

double norm_of(const std::vector<Floats>& gradients) {
  double sum = 0;
  for (const Floats& g : gradients) {
    for (const float x : g) sum += static_cast<double>(x) * static_cast<double>(x);
  }
  return std::sqrt(sum);
}

TEST(GradientStats, NormAndFactors) {
  const std::vector<Floats> gradients = some_gradients(3);
  const double norm = norm_of(gradients);
  std::optional<float> first;
  simt::for_each_schedule([&] {
    for (const int offset : {0, 1}) {
      const Tensors tensors(gradients, offset);
      const StatsResult plain = stats_of(tensors);
      EXPECT_NEAR(static_cast<double>(plain.norm), norm, norm * 1e-6);
      EXPECT_EQ(plain.nonfinite, 0);
      EXPECT_EQ(plain.factor, 1);
      EXPECT_EQ(plain.bad_tensor, -1);
      EXPECT_EQ(first.value_or(plain.norm), plain.norm);  // the same bits on each schedule
      first = plain.norm;
      const Device scale(Floats{1024.0f}), ratio(Floats{-0.5f});
      const StatsResult clipped = stats_of(tensors, {.clip_norm = 0.01, .ratio = ratio.data(), .scale = scale.data()});
      const double unscaled = norm * 0.5 / 1024;
      EXPECT_NEAR(static_cast<double>(clipped.norm), unscaled, unscaled * 1e-6);
      EXPECT_NEAR(static_cast<double>(clipped.factor), 0.01 / (unscaled + 1e-6) / 1024, 1e-6 / 1024);
    }
  });
}

TEST(GradientStats, OP10_NormsThatDoNotFitTheirSquares) {
  for (const auto& [count, value] : std::map<size_t, float>{{100, 1e20f}, {128, 1e19f}, {5000, 1e-30f}, {77, 1e-42f}}) {
    SCOPED_TRACE(value);
    const Tensors tensors({Floats(count, value)});
    const double norm = static_cast<double>(value) * std::sqrt(static_cast<double>(count));
    const StatsResult stats = stats_of(tensors, {.clip_norm = 1});
    EXPECT_NEAR(static_cast<double>(stats.norm), norm, norm * 1e-6 + 0x1p-149);
    EXPECT_EQ(stats.nonfinite, 0);
    const double factor = norm > 1 ? 1 / norm : 1;
    EXPECT_NEAR(static_cast<double>(stats.factor), factor, factor * 1e-5);
  }
}

TEST(GradientStats, TheLargestFloatIsFinite) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  const StatsResult stats = stats_of(Tensors({Floats{0, -kLargest, 0}}));
  EXPECT_EQ(stats.norm, kLargest);
  EXPECT_EQ(stats.nonfinite, 0);
}

/// A table of one tensor, whose gradient is clipped to norm 1.
class ClippedTensor {
 public:
  explicit ClippedTensor(const UpdateTensor& tensor)
      : table_{tensor},
        chunks_(number_chunks(std::span(table_))),
        device_(table_),
        workspace_(static_cast<size_t>(gradient_stats_workspace_bytes(chunks_))) {}

  void look_at_gradient(const float* scale = nullptr) {
    gradient_stats({.chunks = chunks_,
                    .clip_norm = 1,
                    .scale = scale,
                    .stats = stats_.data(),
                    .table = device_.data(),
                    .tensors = 1,
                    .workspace = workspace_.data(),
                    .workspace_bytes = static_cast<int64_t>(workspace_.size())},
                   nullptr);
  }
  /// With learning rate 1.
  void descend() {
    sgd({.chunks = chunks_, .learning_rate = 1, .stats = stats_.data(), .table = device_.data(), .tensors = 1},
        nullptr);
  }
  const Device& stats() const { return stats_; }

 private:
  std::vector<UpdateTensor> table_;
  int64_t chunks_;
  simt::DeviceBuffer<UpdateTensor> device_;
  simt::DeviceBuffer<uint8_t> workspace_;
  Device stats_{4};
};

TEST(GradientStats, OP10_ClippedToNormOneEachElementMovesByATenth) {
  const Device w(Floats(100, 0)), g(Floats(100, 1e20f));
  ClippedTensor clipped({.count = 100, .gradient = g.data(), .parameter = w.data()});
  clipped.look_at_gradient();
  clipped.descend();
  for (const float value : w.download()) EXPECT_NEAR(value, -0.1f, 1e-6f);
}

TEST(GradientStats, OP10_NonfiniteElementsAreCountedAndNamed) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNotANumber = std::numeric_limits<float>::quiet_NaN();
  std::vector<Floats> gradients = some_gradients();
  gradients[4][4097] = -kInf;
  gradients[4][4098] = kNotANumber;
  gradients[6][9000] = kInf;
  const Tensors tensors(gradients);
  const simt::DeviceBuffer<Status> status({Status{}});
  const StatsResult stats = stats_of(tensors, {.clip_norm = 1, .node = 12, .status = status.data()});
  EXPECT_EQ(stats.nonfinite, 3);
  EXPECT_TRUE(std::isfinite(stats.norm));
  EXPECT_EQ(stats.bad_tensor, 4);
  const Status set = status.download()[0];
  EXPECT_EQ(set.kind, Status::kNonfiniteGradient);
  EXPECT_EQ(set.node, 12);
  EXPECT_EQ(set.sample, 104);
  const simt::DeviceBuffer<Status> first({Status{}});
  const Tensors bad_first({Floats{kInf}, Floats{1}});
  EXPECT_EQ(stats_of(bad_first, {.status = first.data()}).bad_tensor, 0);
  EXPECT_EQ(first.download()[0].sample, 100);
  // An earlier error stays.
  const simt::DeviceBuffer<Status> other({Status{Status::kLabel, 3, 5, 99}});
  stats_of(tensors, {.status = other.data()});
  EXPECT_EQ(other.download()[0].kind, Status::kLabel);
  EXPECT_EQ(other.download()[0].node, 3);
}

// ---- the rules of single values

/// One parameter of one element through `updates` updates with one gradient.
struct Single {
  explicit Single(float w, float g) : parameter(Floats{w}), gradient(Floats{g}), m(Floats{0}), v(Floats{0}) {}
  Floats sgd_path(SgdOptions options, int updates) {
    Floats path;
    for (int t = 1; t <= updates; ++t) {
      options.count = 1, options.gradient = gradient.data(), options.moment1 = m.data();
      options.parameter = parameter.data(), options.update = t;
      sgd(options, nullptr);
      path.push_back(parameter.download()[0]);
    }
    return path;
  }
  float adam_once(AdamOptions options, bool decoupled) {
    options.count = 1, options.gradient = gradient.data(), options.moment1 = m.data(), options.moment2 = v.data();
    options.parameter = parameter.data();
    decoupled ? adamw(options, nullptr) : adam(options, nullptr);
    return parameter.download()[0];
  }
  Device parameter, gradient, m, v;
};

void expect_path(const Floats& have, const std::vector<double>& want) { expect_close(doubles(have), want, 1e-6, 1e-7); }

TEST(Optimizers, OP01_EpsilonIsAddedAfterTheBiasCorrection) {
  EXPECT_NEAR(Single(0, 1e-8f).adam_once({.epsilon = 1e-8, .learning_rate = 1e-3}, false), -5.0e-4f, 1e-9f);
}

TEST(Optimizers, OP03_DecoupledDecayIsNotNormalised) {
  EXPECT_NEAR(Single(1, 0).adam_once({.learning_rate = 0.1, .weight_decay = 0.1}, true), 0.99f, 1e-7f);
  EXPECT_NEAR(Single(1, 0).adam_once({.learning_rate = 0.1, .weight_decay = 0.1}, false), 0.90f, 1e-6f);
}

TEST(Optimizers, OP04_DecayComesBeforeTheStep) {
  EXPECT_NEAR(Single(2, 1).adam_once({.epsilon = 1e-8, .learning_rate = 0.1, .weight_decay = 0.5}, true), 1.8f, 3e-7f);
}

TEST(Optimizers, OP05_DecayWithoutMomentumAndDampeningAfterTheFirstUpdate) {
  expect_path(Single(1, 0).sgd_path({.learning_rate = 0.1, .weight_decay = 0.1}, 1), {0.99});
  expect_path(Single(1, 1).sgd_path({.dampening = 0.5, .learning_rate = 0.1, .momentum = 0.9}, 3), {0.9, 0.76, 0.584});
}

TEST(Optimizers, OP07_MomentumIsKept) {
  expect_path(Single(1, 1).sgd_path({.learning_rate = 0.1}, 5), {0.9, 0.8, 0.7, 0.6, 0.5});
  expect_path(Single(1, 1).sgd_path({.learning_rate = 0.1, .momentum = 0.9}, 5), {0.9, 0.71, 0.439, 0.0951, -0.31441});
}

TEST(Optimizers, OP11_ClippingReachesEachOptimizerAndShadow) {
  for (const DType shadow_type : {DType::f16, DType::bf16}) {
    const size_t count = 100;
    Device w(Floats(count, 0)), g(Floats(count, 1)), m(Floats(count, 0));  // norm 10
    const Elements shadow(shadow_type, count);
    ClippedTensor clipped({.count = 100,
                           .gradient = g.data(),
                           .moment1 = m.data(),
                           .parameter = w.data(),
                           .shadow = shadow.data(),
                           .shadow_type = shadow_type});
    for (const float gradient : {1.0f, 0.0f}) {  // a norm of zero divides nothing
      g.upload(Floats(count, gradient));
      clipped.look_at_gradient();
      clipped.descend();
      EXPECT_NEAR(norm_of({w.download()}), 1, 1e-3);
      expect_close(shadow.values(), std::vector<double>(count, -0.1), test::rounding(shadow_type), 1e-6);
    }
    w.upload(Floats(count, 0));
    g.upload(Floats(count, 1));
    const Device v(Floats(count, 0));
    clipped.look_at_gradient();
    m.upload(Floats(count, 0));
    adam({.count = 100,
          .gradient = g.data(),
          .moment1 = m.data(),
          .moment2 = v.data(),
          .parameter = w.data(),
          .stats = clipped.stats().data()},
         nullptr);
    for (const float moment : m.download()) EXPECT_NEAR(moment, 0.1f * 0.1f, 1e-7f);
  }
}

TEST(Optimizers, AMP04_ClippingSeesUnscaledGradients) {
  const Device w(Floats{0, 0}), g(Floats{3 * 65536.0f, 4 * 65536.0f}), scale(Floats{65536.0f});
  ClippedTensor clipped({.count = 2, .gradient = g.data(), .parameter = w.data()});
  clipped.look_at_gradient(scale.data());
  clipped.descend();
  const Floats moved = w.download();
  EXPECT_NEAR(moved[0], -0.6f, 1e-5f);
  EXPECT_NEAR(moved[1], -0.8f, 1e-5f);
  EXPECT_NEAR(clipped.stats().download()[0], 5, 1e-5f);
}

TEST(Optimizers, AMP10_MastersMoveByWhatShadowsCannotHold) {
  const Device w(Floats{1}), g(Floats{1});
  const Elements shadow(DType::bf16, std::vector<double>{1});
  for (int t = 1; t <= 100; ++t) {
    sgd({.count = 1,
         .gradient = g.data(),
         .learning_rate = 1e-3,
         .parameter = w.data(),
         .shadow = shadow.data(),
         .shadow_type = DType::bf16,
         .update = t},
        nullptr);
  }
  EXPECT_NEAR(w.download()[0], 0.9f, 1e-4f);
  EXPECT_EQ(shadow.values()[0], rounded(static_cast<double>(w.download()[0]), DType::bf16));
}

// ---- walks over tables

struct Expected {
  double w, m, v, average;
};

template <class Rule>
void check_walk(const Tensors& tensors, const std::vector<Floats>& gradients,
                const std::vector<std::vector<double>>& before, double average_decay, bool second_moment, Rule rule) {
  const std::vector<std::vector<double>> after = tensors.state();
  for (size_t k = 0; k < tensors.tensors.size(); ++k) {
    SCOPED_TRACE(testing::Message() << "tensor " << k);
    std::vector<double> w, m, v, average;
    for (size_t i = 0; i < gradients[k].size(); ++i) {
      Expected e{before[5 * k][i], before[5 * k + 1][i], before[5 * k + 2][i], before[5 * k + 3][i]};
      rule(e, static_cast<double>(gradients[k][i]), tensors.entry(k));
      w.push_back(e.w), m.push_back(e.m), v.push_back(e.v);
      average.push_back(average_decay * e.average + (1 - average_decay) * e.w);
    }
    expect_close(after[5 * k], w, 1e-6, 1e-6);
    expect_close(after[5 * k + 1], m, 1e-6, 1e-6);
    if (second_moment) expect_close(after[5 * k + 2], v, 1e-6, 1e-6);
    expect_close(after[5 * k + 3], average, 1e-6, 1e-6);
    EXPECT_EQ(after[5 * k + 4], rounded(after[5 * k], tensors.entry(k).shadow_type));
  }
}

TEST(Walks, SgdOverATable) {
  const std::vector<Floats> gradients = some_gradients();
  simt::for_each_schedule([&] {
    for (const int offset : {0, 1}) {
      for (const bool begins : {false, true}) {
        const Tensors tensors(gradients, offset);
        const auto before = tensors.state();
        const Device rate(Floats{0.25f}), ratio(Floats{2.0f}), stats(Floats{1.0f, 0.0f, 0.125f}),
            first(Floats{begins ? 1.0f : 0.0f});
        const simt::DeviceBuffer<Status> status({Status{}});
        sgd({.average_decay = 0.75,
             .chunks = tensors.chunks,
             .dampening = 0.3,
             .first = first.data(),
             .momentum = 0.9,
             .nesterov = !begins,
             .rate = rate.data(),
             .ratio = ratio.data(),
             .stats = stats.data(),
             .status = status.data(),
             .table = tensors.table(),
             .tensors = tensors.size()},
            nullptr);
        check_walk(tensors, gradients, before, 0.75, false, [&](Expected& e, double g, const UpdateTensor& t) {
          const double d = 0.25 * g + static_cast<double>(t.weight_decay) * e.w;
          e.m = begins ? d : 0.9 * e.m + 0.7 * d;
          e.w -= 0.25 * static_cast<double>(t.rate_scale) * (begins ? e.m : d + 0.9 * e.m);
        });
      }
    }
  });
}

TEST(Walks, AdamOverATable) {
  const std::vector<Floats> gradients = some_gradients();
  simt::for_each_schedule([&] {
    for (const bool decoupled : {false, true}) {
      const Tensors tensors(gradients, decoupled ? 1 : 0);
      const auto before = tensors.state();
      const Device rate(Floats{0.125f}), ratio(Floats{0.5f}), stats(Floats{1.0f, 0.0f, 4.0f}), bias1(Floats{0.271f}),
          bias2(Floats{0.0297f});
      const AdamOptions options{.average_decay = 0.5,
                                .beta1 = 0.9,
                                .beta2 = 0.99,
                                .bias1 = bias1.data(),
                                .bias2 = bias2.data(),
                                .chunks = tensors.chunks,
                                .epsilon = 1e-3,
                                .rate = rate.data(),
                                .ratio = ratio.data(),
                                .stats = stats.data(),
                                .table = tensors.table(),
                                .tensors = tensors.size()};
      decoupled ? adamw(options, nullptr) : adam(options, nullptr);
      check_walk(tensors, gradients, before, 0.5, true, [&](Expected& e, double g, const UpdateTensor& t) {
        const double decay = static_cast<double>(t.weight_decay), step = 0.125 * static_cast<double>(t.rate_scale);
        const double d = 2 * g + (decoupled ? 0 : decay * e.w);
        if (decoupled) e.w -= step * decay * e.w;
        e.m = 0.9 * e.m + 0.1 * d;
        e.v = 0.99 * e.v + 0.01 * d * d;
        e.w -= step / 0.271 * e.m / (std::sqrt(e.v / 0.0297) + 1e-3);
      });
    }
  });
}

TEST(Walks, AdamWithNumbersIsAdamWithScalars) {
  const Floats w0 = random_floats(50, 1), g0 = random_floats(50, 2);
  const Device g(g0), zeros1(Floats(50, 0)), zeros2(Floats(50, 0)), other1(Floats(50, 0)), other2(Floats(50, 0));
  const Device w(w0), other(w0), rate(Floats{0.01f});
  for (int64_t t = 1; t <= 3; ++t) {
    const Device bias1(Floats{static_cast<float>(1 - std::pow(0.9, t))}),
        bias2(Floats{static_cast<float>(1 - std::pow(0.999, t))});
    adamw({.beta1 = 0.9,
           .beta2 = 0.999,
           .count = 50,
           .epsilon = 1e-8,
           .gradient = g.data(),
           .learning_rate = 0.01,
           .moment1 = zeros1.data(),
           .moment2 = zeros2.data(),
           .parameter = w.data(),
           .update = t,
           .weight_decay = 0.01},
          nullptr);
    adamw({.bias1 = bias1.data(),
           .bias2 = bias2.data(),
           .count = 50,
           .gradient = g.data(),
           .moment1 = other1.data(),
           .moment2 = other2.data(),
           .parameter = other.data(),
           .rate = rate.data(),
           .weight_decay = 0.01},
          nullptr);
    expect_close(doubles(w.download()), doubles(other.download()), 1e-5, 1e-6);
  }
}

TEST(Walks, AMP11_NothingMovesWhereAnElementIsNotFinite) {
  for (const bool by_status : {false, true}) {
    const Tensors tensors(some_gradients());
    const auto before = tensors.state();
    const Device stats(Floats{1.0f, by_status ? 0.0f : 1.0f, 1.0f});
    const simt::DeviceBuffer<Status> status({by_status ? Status{Status::kLabel, 0, 0, 0} : Status{}});
    sgd({.average_decay = 0.5,
         .chunks = tensors.chunks,
         .momentum = 0.9,
         .stats = stats.data(),
         .status = status.data(),
         .table = tensors.table(),
         .tensors = tensors.size()},
        nullptr);
    adam({.average_decay = 0.5,
          .chunks = tensors.chunks,
          .stats = stats.data(),
          .status = status.data(),
          .table = tensors.table(),
          .tensors = tensors.size()},
         nullptr);
    EXPECT_EQ(tensors.state(), before);
    const Device from(Floats{1, 2}), to(Floats{7, 8});
    std::vector<StagedTensor> staged = {{.count = 2, .from = from.data(), .to = to.data()}};
    const int64_t chunks = number_chunks(std::span(staged));
    const simt::DeviceBuffer<StagedTensor> table(staged);
    commit_staged(
        {.chunks = chunks, .stats = stats.data(), .status = status.data(), .table = table.data(), .tensors = 1},
        nullptr);
    EXPECT_EQ(to.download(), (Floats{7, 8}));
  }
}

TEST(Walks, StagedBuffersAreCommitted) {
  for (const int offset : {0, 1}) {
    std::vector<Elements> from, to;
    std::vector<StagedTensor> staged;
    for (const size_t count : {3, 4096, 0, 5003}) {
      from.emplace_back(DType::f32, random_values(count, static_cast<unsigned>(count)), offset);
      to.emplace_back(DType::f32, count, offset);
      staged.push_back(
          {.count = static_cast<int64_t>(count), .from = from.back().data<float>(), .to = to.back().data<float>()});
    }
    const int64_t chunks = number_chunks(std::span(staged));
    EXPECT_EQ(chunks, 4);
    const simt::DeviceBuffer<StagedTensor> table(staged);
    const Device stats(Floats{1.0f, 0.0f, 1.0f});
    commit_staged({.chunks = chunks, .stats = stats.data(), .table = table.data(), .tensors = 4}, nullptr);
    for (size_t i = 0; i < from.size(); ++i) EXPECT_EQ(to[i].values(), from[i].values());
  }
}

TEST(Optimizers, RefuseWhatDoesNotFit) {
  EXPECT_THROW(sgd({.count = 1}, nullptr), Error);
  EXPECT_THROW(sgd({.learning_rate = kNan}, nullptr), Error);
  EXPECT_THROW(adam({.beta1 = 1}, nullptr), Error);
  EXPECT_THROW(gradient_stats({}, nullptr), Error);
  EXPECT_THROW(scale_update({}, nullptr), Error);
  EXPECT_THROW(commit_staged({}, nullptr), Error);
  EXPECT_THROW(select_rates({}, nullptr), Error);
  const Device w(1);
  try {
    adamw({.count = 1,
           .gradient = w.data(),
           .moment1 = w.data(),
           .moment2 = w.data(),
           .parameter = w.data(),
           .update = 0},
          nullptr);
    FAIL() << "update 0 was accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "Error [option] kernels::adamw.update = 0: must be 1 or more");
  }
}

}  // namespace
}  // namespace brisk::kernels
