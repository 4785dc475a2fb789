// The model zoo is PyTorch's: names and shapes at full width, logits and one update at reduced width from the same
// weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "brisk/brisk.h"
#include "golden/golden_data.h"
#include "golden/networks.h"

namespace brisk::golden {
namespace {

using nlohmann::json;

constexpr uint64_t kParameterStream = 1, kInputStream = 5000, kLabelStream = 5001, kProbeStream = 6000;
constexpr double kTimesPyTorch = 4;  // how much farther from double precision than PyTorch's own f32 we may be

const json& golden() {
  static const json all = json::parse(std::ifstream(BRISK_SOURCE_DIR "/tests/golden/models.json"));
  return all;
}

// A network whose first stage has `width` channels, or whose widths are multiplied by it.
ModelFunction make(const std::string& name, double width, int64_t classes) {
  const auto channels = static_cast<int64_t>(width);
  const models::Resnet32x32Options small = {.channels = channels, .classes = classes};
  const models::ResnetOptions large = {.channels = channels, .classes = classes};
  const models::EfficientnetOptions efficient = {
      .classes = classes, .dropout = 0, .stochastic_depth = 0, .width = width};
  if (name == "resnet9") return models::resnet9(small);
  if (name == "resnet18_cifar") return models::resnet18_cifar(small);
  if (name == "resnet34_cifar") return models::resnet34_cifar(small);
  if (name == "resnet18") return models::resnet18(large);
  if (name == "resnet34") return models::resnet34(large);
  if (name == "resnet50") return models::resnet50(large);
  if (name == "resnet101") return models::resnet101(large);
  if (name == "mobilenet_v2") return models::mobilenet_v2({.classes = classes, .dropout = 0, .width = width});
  if (name == "efficientnet_b0") return models::efficientnet_b0(efficient);
  if (name == "efficientnet_b1") return models::efficientnet_b1(efficient);
  if (name == "efficientnet_b2") return models::efficientnet_b2(efficient);
  if (name == "efficientnet_b3") return models::efficientnet_b3(efficient);
  if (name == "efficientnet_b4") return models::efficientnet_b4(efficient);
  if (name == "unet") return models::unet({.channels = channels, .classes = classes, .depth = 3});
  if (name == "autoencoder") return models::autoencoder({.channels = channels, .features = 8});
  throw std::runtime_error("models.json has an unknown network " + name);
}

// models.py's digest: FNV-1a of the sorted lines "name [2, 3]".
std::string digest(const Model& model) {
  std::vector<std::string> lines;
  for (const Parameter& parameter : model.parameters()) lines.push_back(parameter.name + " " + parameter.shape.text());
  std::sort(lines.begin(), lines.end());
  uint64_t value = 0xCBF29CE484222325u;
  for (const std::string& line : lines) {
    for (const char c : line + "\n") value = (value ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::vector<float> start(const std::string& name, const Shape& shape, uint64_t place, uint64_t seed) {
  if (shape.rank() > 1) {
    const double fan_in = static_cast<double>(shape.count()) / static_cast<double>(shape[0]);
    return uniform(seed, kParameterStream + place, shape.count(), std::sqrt(6 / fan_in));
  }
  const bool scale = name.size() >= 6 && name.compare(name.size() - 6, 6, "weight") == 0;
  std::vector<float> values = uniform(seed, kParameterStream + place, shape.count(), scale ? 0.25 : 0.125);
  if (scale) std::for_each(values.begin(), values.end(), [](float& value) { value = 1 + value; });
  return values;
}

class Zoo : public testing::TestWithParam<std::string> {
 protected:
  const json& row() const { return golden().at("models").at(GetParam()); }
  uint64_t seed() const { return row().at("seed"); }
  int64_t batch() const { return golden().at("batch"); }
  int64_t classes() const { return golden().at("classes"); }
  Shape image() const { return {3, row().at("size"), row().at("size")}; }

  Model reduced() const {
    Model model(make(GetParam(), row().at("width"), classes()), image());
    std::map<std::string, Shape> shapes;
    for (const Parameter& parameter : model.parameters()) shapes.emplace(parameter.name, parameter.shape);
    uint64_t place = 0;
    for (const std::string name : row().at("parameters")) {
      starts_[name] = start(name, shapes.at(name), place++, seed());
      model.set_parameter(name, view(starts_[name], shapes.at(name)));
    }
    return model;
  }
  std::vector<float> input() const { return uniform(seed(), kInputStream, batch() * image().count(), 1.0); }
  /// (change of a tensor in one update) . (its random direction)
  double probe(const Model& model, const std::string& name, uint64_t place) const {
    const Tensor now = model.parameter(name);
    const std::vector<float> direction = uniform(seed(), kProbeStream + place, now.count(), 1.0);
    const auto before = starts_.find(name);
    const bool variance = name.size() > 3 && name.compare(name.size() - 3, 3, "var") == 0;
    double sum = 0;
    for (size_t i = 0; i < direction.size(); ++i) {
      const double old = before != starts_.end() ? before->second[i] : variance ? 1.0 : 0.0;
      sum += (now.data<float>()[i] - old) * direction[i];
    }
    return sum;
  }
  mutable std::map<std::string, std::vector<float>> starts_;
};

TEST_P(Zoo, NamesAndShapesAtFullWidthArePyTorchs) {
  const std::string& name = GetParam();
  const bool multiplied = name.rfind("mobilenet", 0) == 0 || name.rfind("efficientnet", 0) == 0;
  const double width = multiplied ? 1 : name == "autoencoder" ? 32 : 64;
  const Model model(make(name, width, classes()), image());
  EXPECT_EQ(model.parameter_count(), row().at("full").at("parameters").get<int64_t>());
  EXPECT_EQ(digest(model), row().at("full").at("digest").get<std::string>());
}

TEST_P(Zoo, LogitsArePyTorchs) {
  Model model = reduced();
  const std::vector<float> x = input();
  Shape all{batch()};
  for (const int64_t size : image()) all.append(size);
  const Predictor predictor(model, {.batches = {batch()}});
  const Shape output = predictor.outputs().at(0).shape;
  Shape wanted{batch()};
  for (const int64_t size : output) wanted.append(size);
  std::vector<float> logits(static_cast<size_t>(wanted.count()));
  predictor.run(view(x, all), view(logits, wanted));
  const std::vector<double> golden_logits = row().at("logits");
  const double scale = row().at("norm"), own = row().at("pytorch").at(0);
  double sum = 0;
  for (size_t i = 0; i < golden_logits.size(); ++i) {
    const size_t at = logits.size() <= 64 ? i : hash(0, 3000, i) % logits.size();
    sum += (logits[at] - golden_logits[i]) * (logits[at] - golden_logits[i]);
  }
  const double distance = std::sqrt(sum / static_cast<double>(golden_logits.size())) / scale;
  std::printf("  logits %.1e, PyTorch %.1e\n", distance, own);
  EXPECT_LE(distance, kTimesPyTorch * std::max(own, 1e-6));
}

class ZooUpdate : public Zoo {};  // the larger twins of these are recorded by their logits only

TEST_P(ZooUpdate, IsPyTorchs) {
  Model model = reduced();
  LossFunction loss = cross_entropy();
  if (GetParam() == "autoencoder") loss = mse();
  if (GetParam() == "unet") {
    loss = LossFunction([](Var out, Var target) { return cross_entropy(global_avg_pool2d(out), target); },
                        [](const Vars&) {
                          return std::vector<Field>{{"target", {}, DType::i64}};
                        });
  }
  const std::vector<float> x = input();
  const std::vector<int64_t> y = labels(seed(), kLabelStream, batch(), classes());
  Shape all{batch()};
  for (const int64_t size : image()) all.append(size);
  Step step(model, loss, sgd({.learning_rate = golden().at("rate").get<double>()}), {.batch = batch(), .threads = 2});
  step.run(view(x, all), GetParam() == "autoencoder" ? view(x, all) : view(y, {batch()}));
  const double own = row().at("pytorch").at(1);
  EXPECT_NEAR(step.read().loss, row().at("loss").get<double>(), 1e-4 * row().at("loss").get<double>());
  double sum = 0;
  uint64_t place = 0;
  for (const json& tensor : row().at("tensors")) {
    const std::string name = tensor.at(0);
    const double error = (probe(model, name, place++) - tensor.at(2).get<double>()) / tensor.at(3).get<double>();
    EXPECT_LE(std::abs(error), 0.05) << name;
    sum += error * error;
  }
  const double rms = std::sqrt(sum / static_cast<double>(place));
  std::printf("  update %.1e, PyTorch %.1e\n", rms, own);
  EXPECT_LE(rms, kTimesPyTorch * std::max(own, 1e-5));
}

std::vector<std::string> names(bool whole) {
  std::vector<std::string> all;
  for (const auto& [name, row] : golden().at("models").items()) {
    if (!whole || row.contains("tensors")) all.push_back(name);
  }
  return all;
}
std::string own_name(const testing::TestParamInfo<std::string>& row) { return row.param; }
INSTANTIATE_TEST_SUITE_P(Networks, Zoo, testing::ValuesIn(names(false)), own_name);
INSTANTIATE_TEST_SUITE_P(Networks, ZooUpdate, testing::ValuesIn(names(true)), own_name);

}  // namespace
}  // namespace brisk::golden
