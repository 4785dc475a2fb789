// Fields of data sets against inputs and targets: several of each, missing ones, and data that does not suit the model.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "brisk/log.h"
#include "brisk/ops/elementwise.h"
#include "brisk/ops/linear.h"
#include "brisk/ops/norm.h"
#include "brisk/ops/shape.h"
#include "brisk/trainer.h"
#include "train_support.h"

namespace brisk {
namespace {

/// Two inputs and two targets; every fifth lane is -1, which stands for "not known".
InMemoryDataset drives(int64_t n, const std::string& steer = "steer") {
  std::vector<float> image(static_cast<size_t>(n * 12)), imu(static_cast<size_t>(n * 2)), angle(static_cast<size_t>(n));
  std::vector<int64_t> lane(static_cast<size_t>(n));
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>((i * 37 % 101) / 101.0);
  for (size_t i = 0; i < imu.size(); ++i) imu[i] = static_cast<float>((i * 17 % 53) / 53.0);
  for (size_t i = 0; i < angle.size(); ++i) {
    angle[i] = imu[2 * i] - imu[2 * i + 1];
    lane[i] = i % 5 == 4 ? -1 : static_cast<int64_t>(image[12 * i] * 3);
  }
  InMemoryDataset out;
  out.add("image", Tensor(std::move(image), {n, 3, 2, 2}));
  out.add("imu", Tensor(std::move(imu), {n, 2}));
  out.add("lane", Tensor(std::move(lane), {n}));
  out.add(steer, Tensor(std::move(angle), {n, 1}));
  out.set_name("drives");
  return out;
}

Vars driver(const Vars& in) {
  Var both = relu(linear(concat({flatten(in["image"]), relu(linear(in["imu"], 8))}, {.axis = 1}), 16));
  return {{"lane", linear(both, 3, {.name = "lane"})}, {"steer", linear(both, 1, {.name = "steer"})}};
}
Model driver_model() { return Model(driver, {{"image", {3, 2, 2}}, {"imu", {2}}}); }

Mean driver_loss(const Vars& out, const Vars& target) {
  return cross_entropy(out["lane"], target["lane"], {.ignore_index = -1, .name = "lane"}) +
         0.3 * huber(out["steer"], target["steer"], {.delta = 0.1, .name = "steer"});
}
Mean lane_accuracy(const Vars& out, const Vars& target) {
  return accuracy(out["lane"], target["lane"], {.ignore_index = -1});
}

TEST(Fields, TwoInputsTwoHeadsTwoLosses) {
  const TemporaryFolder folder;
  Model model = driver_model();
  Trainer trainer(model, driver_loss, adamw({.learning_rate = 0.01}), {.accumulate = 2, .batch = 8});
  trainer.add_metric("lane_accuracy", lane_accuracy);
  FitOptions options = quiet(30_epochs);
  options.run_folder = folder.path();
  const EvaluationResult before = trainer.evaluate(drives(45));
  const FitResult result = trainer.fit(drives(45), drives(45), options);
  ASSERT_EQ(result.evaluation.terms.size(), 2U);
  EXPECT_EQ(result.evaluation.terms[0].name, "lane");
  EXPECT_EQ(result.evaluation.terms[0].count, 36);  // nine of 45 are ignored
  EXPECT_EQ(result.evaluation.terms[1].name, "steer");
  EXPECT_EQ(result.evaluation.terms[1].count, 45);
  EXPECT_NEAR(result.evaluation.loss, result.evaluation.terms[0].value() + 0.3 * result.evaluation.terms[1].value(),
              1e-12);
  EXPECT_NEAR(result.train.loss, result.train.terms[0].value() + 0.3 * result.train.terms[1].value(), 1e-12);
  EXPECT_LT(result.evaluation.loss, 0.7 * before.loss);
  EXPECT_EQ(result.evaluation.metrics[0].name, "lane_accuracy");
  const nlohmann::json last = read_events(folder.path() + "/events.jsonl").back();
  EXPECT_EQ(last["type"], "finish");
}

TEST(Fields, BytesOfADataSetReachTheModelAsBytes) {
  std::vector<uint8_t> image;
  std::vector<int64_t> label;
  for (int64_t i = 0; i < 40 * 6; ++i) image.push_back(static_cast<uint8_t>(i / 6 % 2 == 0 ? 30 + i % 7 : 200 + i % 5));
  for (int64_t i = 0; i < 40; ++i) label.push_back(i % 2);
  InMemoryDataset set;
  set.add("input", Tensor(std::move(image), {40, 2, 3}));
  set.add("target", Tensor(std::move(label), {40}));
  Model model([](Var x) { return linear(flatten(cast(x, DType::f32) * (1 / 255.0) - 0.5), 2); },
              Inputs{{"input", {2, 3}, DType::u8}});
  Trainer trainer(model, cross_entropy(), sgd({.learning_rate = 0.5}), {.batch = 8});
  trainer.add_metric("accuracy", accuracy());
  EXPECT_EQ(trainer.fit(set, set, quiet(10_epochs)).evaluation.metrics[0].value(), 1);

  Model of_floats([](Var x) { return linear(flatten(x), 2); }, {2, 3});
  Trainer refused(of_floats, cross_entropy(), sgd({.learning_rate = 0.5}), {.batch = 8});
  EXPECT_NE(error_text([&] { refused.fit(set, quiet(1_epochs)); }).find("u8"), std::string::npos);
}

TEST(Fields, AMissingTargetIsNamedWithWhatThereIs) {
  Model model = driver_model();
  Trainer trainer(model, driver_loss, adamw(), {.batch = 8});
  const std::string text = error_text([&] { trainer.fit(drives(20, "steeer"), quiet(1_epochs)); });
  EXPECT_EQ(text,
            "Error [data] data set \"drives\" has no field \"steer\"; it has image, imu, lane, steeer (did you mean "
            "steeer?)");
}

TEST(Fields, AMissingInputIsNamed) {
  Model model([](const Vars& in) { return linear(in["features"], 1); }, Inputs{{"features", {2}}});
  Trainer trainer(model, mse(), adamw(), {.batch = 8});
  EXPECT_EQ(error_text([&] { trainer.fit(drives(20), quiet(1_epochs)); }),
            "Error [data] data set \"drives\" has no field \"features\"; it has image, imu, lane, steer");
}

TEST(Fields, ASingleTargetMayHaveAnyName) {
  InMemoryDataset data;
  data.add("input", Tensor(std::vector<float>{1, 2, 3, 4}, {4, 1}));
  data.add("price", Tensor(std::vector<float>{1, 2, 3, 4}, {4, 1}));
  Model model([](Var x) { return linear(x, 1); }, {1});
  Trainer trainer(model, mse(), sgd({.learning_rate = 0.01}), {.batch = 4});
  EXPECT_EQ(trainer.fit(data, quiet(1_epochs)).clock.updates, 1);
  data.add("weight", Tensor(std::vector<float>{1, 2, 3, 4}, {4, 1}));
  EXPECT_NE(error_text([&] {
              trainer.fit(data, quiet(2_epochs));
            }).find("has 2 fields that could be the loss's target: price, weight"),
            std::string::npos);
}

TEST(Fields, ShapesAndTypesMustAgree) {
  InMemoryDataset data;
  data.add("input", Tensor(std::vector<float>{1, 2, 3, 4}, {4, 1}));
  data.add("target", Tensor(std::vector<float>{1, 2, 3, 4}, {4}));
  data.set_name("flat");
  Model model([](Var x) { return linear(x, 1); }, {1});
  Trainer trainer(model, mse(), sgd({.learning_rate = 0.01}), {.batch = 4});
  EXPECT_EQ(error_text([&] { trainer.fit(data, quiet(1_epochs)); }),
            "Error [data] data set \"flat\", field \"target\": one sample is [] f32, the loss takes [1] f32; give the "
            "column in that shape and type");
}

TEST(Fields, NoTargetAtAll) {
  InMemoryDataset data;
  data.add("input", Tensor(std::vector<float>{1, 2}, {2, 1}));
  Model model([](Var x) { return linear(x, 1); }, {1});
  Trainer trainer(model, [](Var out, Var) { return sample_mean(out); }, sgd({.learning_rate = 0.01}), {.batch = 2});
  EXPECT_NE(error_text([&] { trainer.fit(data, quiet(1_epochs)); }).find("has no target"), std::string::npos);
}

TEST(Fields, ALabelOutsideIsNamedByItsSample) {
  std::vector<int64_t> labels(40, 0);
  labels[17] = 3;
  InMemoryDataset data;
  data.add("input", Tensor(std::vector<float>(40, 1), {40, 1}));
  data.add("target", Tensor(std::move(labels), {40}));
  data.set_name("train");
  Model model([](Var x) { return linear(x, 3); }, {1});
  Trainer trainer(model, cross_entropy(), sgd({.learning_rate = 0.01}), {.batch = 8});
  const std::string fitting = error_text([&] { trainer.fit(data, quiet(1_epochs)); });
  EXPECT_NE(fitting.find("sample 17 of \"train\" has label 3, allowed 0..2"), std::string::npos) << fitting;
  const std::string evaluating = error_text([&] { trainer.evaluate(data); });
  EXPECT_NE(evaluating.find("sample 17 of \"train\" has label 3"), std::string::npos) << evaluating;
}

TEST(Fields, BatchLargerThanTheDataSetIsOneExactShortBatch) {
  std::vector<std::string> warnings;
  set_logger([&](LogLevel level, std::string_view line) {
    if (level == LogLevel::warning) warnings.emplace_back(line);
  });
  InMemoryDataset data;
  data.add("input", Tensor(std::vector<float>(7, 1), {7, 1}));
  data.add("target", Tensor(std::vector<float>{1, 2, 3, 4, 5, 6, 7}, {7, 1}));
  Model model([](Var x) { return linear(x, 1, {.bias = false}); }, {1});
  model.set_parameter("fc1.weight", Tensor(std::vector<float>{0}, {1, 1}));
  Trainer trainer(model, mse(), sgd({.learning_rate = 0.05}), {.batch = 64});
  const FitResult result = trainer.fit(data, quiet(1_epochs));
  FitOptions dropping = quiet(2_epochs);
  dropping.drop_last = true;
  const std::string refused = error_text([&] { trainer.fit(data, dropping); });
  set_logger(nullptr);
  EXPECT_EQ(result.clock.updates, 1);
  EXPECT_NEAR(model.parameter("fc1.weight").data<float>()[0], 0.4, 1e-6);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("StepOptions.batch = 64"), std::string::npos) << warnings[0];
  EXPECT_NE(refused.find("FitOptions.drop_last = true: leaves no micro-batch"), std::string::npos) << refused;
}

TEST(Fields, DA09OneSampleLeftForBatchNorm) {
  // 17 samples in batches of 16 leave one, whose variance over the samples is 0: said before the first step.
  std::vector<float> x(17 * 4);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7);
  InMemoryDataset data;
  data.add("input", Tensor(std::move(x), {17, 4}));
  data.add("target", Tensor(std::vector<int64_t>(17, 1), {17}));
  Model model([](Var v) { return linear(relu(batch_norm(linear(v, 6))), 2); }, {4});
  Trainer trainer(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 16});
  const std::string text = error_text([&] { trainer.fit(data, quiet(1_epochs)); });
  EXPECT_NE(text.find("bn1"), std::string::npos) << text;
  EXPECT_NE(text.find(".drop_last = true"), std::string::npos) << text;
  EXPECT_EQ(trainer.clock().updates, 0);
  EXPECT_EQ(trainer.evaluate(data).samples, 17);
  FitOptions dropping = quiet(2_epochs);
  dropping.drop_last = true;
  const FitResult result = trainer.fit(data, data, dropping);
  EXPECT_EQ(result.clock.updates, 2);
  EXPECT_EQ(result.evaluation.samples, 17);
}

TEST(Fields, EmptyDataSetIsRefused) {
  class Empty : public Dataset {
   public:
    int64_t size() const override { return 0; }
    std::vector<Field> fields() const override { return {{"input", {1}}, {"target", {1}}}; }
    void read(int64_t, Sample&, Random&) const override {}
  };
  Model model([](Var v) { return linear(v, 1); }, {1});
  Trainer trainer(model, mse(), sgd({.learning_rate = 0.1}), {.batch = 16});
  EXPECT_NE(error_text([&] { trainer.fit(Empty(), quiet(1_epochs)); }).find("has no samples"), std::string::npos);
  EXPECT_NE(error_text([&] { trainer.evaluate(Empty()); }).find("has no samples"), std::string::npos);
}

}  // namespace
}  // namespace brisk
