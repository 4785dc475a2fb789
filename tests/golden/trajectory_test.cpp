// Fifty updates in f32 end about as near to the double-precision trajectory as PyTorch's own f32 run does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "brisk/brisk.h"
#include "golden/golden_data.h"
#include "golden/networks.h"

namespace brisk::golden {
namespace {

std::vector<float> values_of(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.count()};
}

struct Ours {
  std::vector<double> first, last, losses, statistics;
};

class Runner {
 public:
  explicit Runner(const Trajectories& all) : all_(all) {}

  Ours run(const std::string& name, const std::string& kind, uint64_t seed) const {
    const Network& network = all_.networks.at(name);
    Model model = make_model(all_, name, seed);
    Step step(model, cross_entropy(), optimizer(kind), {.batch = all_.batch, .threads = 2});
    Shape batch{all_.batch};
    for (const int64_t size : network.input) batch.append(size);
    Ours ours;
    for (int64_t update = 0; update < all_.updates; ++update) {
      const std::vector<float> x = all_.inputs(name, seed, update);
      const std::vector<int64_t> y = all_.targets(seed, update);
      step.run(view(x, batch), view(y, {all_.batch}));
      ours.losses.push_back(step.read().loss);
      if (update == 0) ours.first = sampled(model, network);
    }
    ours.last = sampled(model, network);
    for (const BufferRule& buffer : network.buffers) {
      const std::vector<float> values = values_of(model.parameter(buffer.name));
      ours.statistics.insert(ours.statistics.end(), values.begin(), values.end());
    }
    return ours;
  }

 private:
  std::vector<double> sampled(const Model& model, const Network& network) const {
    std::vector<std::vector<float>> values;
    for (const ParameterRule& rule : network.parameters) values.push_back(values_of(model.parameter(rule.name)));
    return all_.sample(values);
  }
  const Trajectories& all_;
};

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b.at(i));
    if (!(difference <= largest)) largest = difference;  // NaN stays
  }
  return largest;
}

struct Case {
  const char* network;
  const char* optimizer;
};

class GoldenTrajectory : public testing::TestWithParam<Case> {
 protected:
  // The median over the seeds of one figure is at most `factor` times that of PyTorch's.
  static void expect_near_pytorch(const char* what, std::vector<double> ours, std::vector<double> theirs,
                                  double factor) {
    std::sort(ours.begin(), ours.end());
    std::sort(theirs.begin(), theirs.end());
    const double own = ours[ours.size() / 2], peer = theirs[theirs.size() / 2];
    std::printf("  %-28s %.2e, PyTorch %.2e: %.2f times\n", what, own, peer, own / peer);
    EXPECT_LE(own, factor * peer) << what;
  }
};

TEST_P(GoldenTrajectory, IsAsNearToDoublePrecisionAsPyTorch) {
  const Trajectories all = read_trajectories(BRISK_SOURCE_DIR "/tests/golden/trajectories.safetensors");
  const std::string name = GetParam().network;
  std::map<std::string, std::vector<double>> ours, theirs;
  for (const Trajectory& wanted : all.runs.at(name).at(GetParam().optimizer)) {
    const Ours run = Runner(all).run(name, GetParam().optimizer, wanted.seed);
    const std::vector<double> start = all.sample(all.initial(name, wanted.seed));
    ours["after 1 update"].push_back(distance(run.first, wanted.first, start));
    ours["after 50 updates"].push_back(distance(run.last, wanted.last, start));
    ours["losses"].push_back(largest_difference(run.losses, wanted.losses));
    theirs["after 1 update"].push_back(wanted.pytorch.after_first);
    theirs["after 50 updates"].push_back(wanted.pytorch.after_last);
    theirs["losses"].push_back(wanted.pytorch.losses);
    if (wanted.statistics.empty()) continue;
    ours["batch-norm statistics"].push_back(distance(run.statistics, wanted.statistics, all.initial_statistics(name)));
    theirs["batch-norm statistics"].push_back(wanted.pytorch.statistics);
  }
  std::printf("%s, %s\n", GetParam().network, GetParam().optimizer);
  for (const auto& [what, figures] : ours) expect_near_pytorch(what.c_str(), figures, theirs[what], 1.5);
}

INSTANTIATE_TEST_SUITE_P(Networks, GoldenTrajectory,
                         testing::Values(Case{"lenet", "sgd"}, Case{"lenet", "adamw"}, Case{"residual", "sgd"},
                                         Case{"residual", "adamw"}),
                         [](const auto& row) { return std::string(row.param.network) + "_" + row.param.optimizer; });

}  // namespace
}  // namespace brisk::golden
