// Data sets that make their samples when they are read: any number of workers gives the same run, and what fails in one
// of them reaches fit()'s caller.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <thread>

#include "brisk/ops/linear.h"
#include "brisk/trainer.h"
#include "train_support.h"

namespace brisk {
namespace {

/// Random points of two classes.
class Scans : public Dataset {
 public:
  explicit Scans(int64_t bad = -1, double read_s = 0) : bad_(bad), read_s_(read_s) {}
  int64_t size() const override { return 90; }
  std::vector<Field> fields() const override { return {{"input", {3}}, {"target", {}, DType::i64}}; }
  void read(int64_t index, Sample& out, Random& random) const override {
    if (index == bad_) throw std::runtime_error("cannot decode scans/5012.png");
    if (read_s_ > 0) std::this_thread::sleep_for(std::chrono::duration<double>(read_s_));
    float* x = out["input"].data<float>();
    for (int i = 0; i < 3; ++i) x[i] = random.normal();
    out["target"].data<int64_t>()[0] = x[index % 3] > 0;
    if (std::this_thread::get_id() != caller_) ++read_elsewhere;
  }
  mutable std::atomic<int64_t> read_elsewhere{0};

 private:
  const int64_t bad_;
  const double read_s_;
  const std::thread::id caller_ = std::this_thread::get_id();
};

Model two_classes() {
  return Model([](Var x) { return linear(x, 2); }, {3});
}

FitOptions reading(Count workers) {
  FitOptions out = quiet(3_epochs);
  out.workers = workers;
  return out;
}

TEST(Workers, GiveTheSameRunWhateverTheirNumber) {
  std::vector<float> first;
  for (const Count workers : {Count(0), Count(1), Count(4), Count()}) {
    const Scans scans;
    Model model = two_classes();
    Trainer trainer(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.accumulate = 2, .batch = 7});
    const FitResult result = trainer.fit(scans, scans, reading(workers));
    EXPECT_EQ(result.clock.updates, 3 * 7);
    const Tensor weight = model.parameter("fc1.weight");
    std::vector<float> values(weight.data<float>(), weight.data<float>() + weight.count());
    const double loss = result.evaluation.loss;
    values.push_back(static_cast<float>(loss));
    if (first.empty()) first = values;
    EXPECT_EQ(values, first);
    const bool caller_reads = workers.set() && workers.value() == 0;
    EXPECT_EQ(scans.read_elsewhere > 0, !caller_reads);
    EXPECT_EQ(trainer.statistics().workers > 0, !caller_reads);
    if (workers.set()) {
      EXPECT_EQ(trainer.statistics().workers, workers.value());
    }
  }
}

TEST(Workers, WhatOneThrowsReachesTheCallerOfFit) {
  for (const int64_t workers : {0, 1, 4}) {
    const Scans scans(37);
    Model model = two_classes();
    Trainer trainer(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 8});
    const std::string text = error_text([&] { trainer.fit(scans, reading(workers)); });
    EXPECT_EQ(text, "Error [data] sample 37 of Scans: cannot decode scans/5012.png");
    EXPECT_EQ(trainer.fit(Scans(), quiet(1_epochs)).reason, StopReason::finished);  // the trainer is usable
  }
}

TEST(Workers, StatisticsTellWhetherTheLoaderIsTheBrake) {
  const Scans slow(-1, 0.002);
  Model model = two_classes();
  Trainer trainer(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 30});
  FitOptions options = reading(0);
  options.duration = 1_epochs;
  trainer.fit(slow, slow, options);
  const FitStatistics found = trainer.statistics();
  EXPECT_GE(found.data_wait_s, 90 * 0.002);
  EXPECT_GE(found.evaluation_s, 90 * 0.002);
  EXPECT_GE(found.seconds, found.data_wait_s + found.evaluation_s);
  EXPECT_GT(found.most_gain(), 1);
  EXPECT_EQ((FitStatistics{.data_wait_s = 3, .evaluation_s = 2, .seconds = 6, .workers = 1}).most_gain(), 4);
}

TEST(Workers, OutOfRangeAreRefused) {
  const Scans scans;
  Model model = two_classes();
  Trainer trainer(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 8});
  for (const int64_t workers : {-1, 1025}) {
    EXPECT_EQ(error_text([&] { trainer.fit(scans, reading(workers)); }),
              "Error [option] FitOptions.workers = " + std::to_string(workers) + ": must be 0 to 1024");
  }
}

}  // namespace
}  // namespace brisk
