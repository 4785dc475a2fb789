// Each operation's value and gradients are PyTorch's: by the reference in double precision, by a Step in float.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "brisk/brisk.h"
#include "golden/double_step.h"
#include "golden/golden_data.h"
#include "golden/op_program.h"

namespace brisk::golden {
namespace {

constexpr double kFloatTolerance = 1e-5;
constexpr double kDoubleTolerance = 1e-11;  // the file has 14 digits

// Too small to move anything; a rate must be positive.
Optimizer still() { return sgd({.learning_rate = 1e-30}); }

std::vector<double> values_of(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.count()};
}

class GoldenOp : public testing::TestWithParam<OpCase> {};

TEST_P(GoldenOp, ReferenceGivesPyTorchsNumbers) {
  const OpProgram program(GetParam());
  DoubleStep step(
      program.model(), [&](const Vars& in) { return program.objective(in); }, program.inputs(), still(),
      program.samples());
  std::map<std::string, std::vector<double>> feed = {{"pick", program.pick()}, {"given", program.given().values}};
  if (program.index() != nullptr) feed["index"] = program.index()->values;
  const double loss = step.run(feed);
  program.check_loss(loss, kDoubleTolerance);
  program.check_gradients([&](const std::string& name) { return step.gradient(name); }, kDoubleTolerance);
  program.check_statistics([&](const std::string& name) { return step.parameter(name); }, kDoubleTolerance);
}

TEST_P(GoldenOp, StepGivesPyTorchsNumbers) {
  const OpProgram program(GetParam());
  const int64_t samples = program.samples();
  Step step([&](const Vars& in) { return program.objective(in); }, program.inputs(), still(),
            {.batch = samples, .threads = 2});
  const std::vector<double> rows = program.pick();
  const std::vector<float> pick(rows.begin(), rows.end()), given = program.given().floats();
  const std::vector<int64_t> labels = program.given().integers();
  const Shape shape(std::span<const int64_t>(program.given().shape));
  Feed feed = {{"pick", view(pick, {samples, samples})}};
  feed.add("given", program.given().integer ? view(labels, shape) : view(given, shape));
  const std::vector<int64_t> index = program.index() == nullptr ? std::vector<int64_t>() : program.index()->integers();
  if (program.index() != nullptr) {
    feed.add("index", view(index, Shape(std::span<const int64_t>(program.index()->shape))));
  }
  step.forward_backward(feed);
  program.check_gradients([&](const std::string& name) { return values_of(step.gradient(name)); }, kFloatTolerance);
  step.update();
  program.check_loss(step.read().loss, kFloatTolerance);
  const auto value = [&](const std::string& name) { return values_of(program.model().parameter(name)); };
  program.check_statistics(value, kFloatTolerance);
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenOp, testing::ValuesIn(read_ops(BRISK_SOURCE_DIR "/tests/golden/ops.json").cases),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace brisk::golden
