// Regression on a table of numbers: columns standardized inside the model, early stopping, metrics in the plan and on
// the host, weights in a file. Without arguments the table is made here (Friedman 1991, "Multivariate adaptive
// regression splines", equation 61: y = 10 sin(pi x1 x2) + 20 (x3 - 0.5)^2 + 10 x4 + 5 x5 + noise of deviation 1, and
// five columns that mean nothing); ends with 1 unless the error comes near that noise.
//   tabular [FILE.csv TARGET]
#include <brisk/brisk.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <string>
#include <vector>

using namespace brisk;

namespace {

InMemoryDataset friedman(int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(0, 1);
  std::normal_distribution<float> noise(0, 1);
  std::vector<float> x, y;
  for (int64_t i = 0; i < n; ++i) {
    float row[10];
    for (float& value : row) value = uniform(random);
    x.insert(x.end(), row, row + 10);
    y.push_back(10 * std::sin(3.14159265f * row[0] * row[1]) + 20 * (row[2] - 0.5f) * (row[2] - 0.5f) + 10 * row[3] +
                5 * row[4] + noise(random));
  }
  InMemoryDataset all;
  all.add("input", Tensor(std::move(x), {n, 10}));
  all.add("target", Tensor(std::move(y), {n, 1}));
  return all;
}

std::vector<double> ranks(const ConstView& values) {
  const float* v = values.data<float>();
  std::vector<size_t> order(static_cast<size_t>(values.count()));
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return v[a] < v[b]; });
  std::vector<double> rank(order.size());
  for (size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<double>(i);
  return rank;
}

/// Spearman's rank correlation: needs all rows at once, so it runs on the host.
double spearman(ConstView output, ConstView target) {
  const std::vector<double> a = ranks(output), b = ranks(target);
  const double n = static_cast<double>(a.size());
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  return 1 - 6 * squares / (n * (n * n - 1));
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 1 && argc != 3) {
    std::fprintf(stderr, "usage: tabular [FILE.csv TARGET]\n");
    return 2;
  }
  const InMemoryDataset all = argc == 3 ? data::csv(argv[1], {.targets = {argv[2]}}).samples : friedman(5000, 1);
  auto [train, test] = all.split({.first = 0.8, .seed = 7});
  const int64_t columns = train.fields()[0].shape[0];
  const Standardizer scale = Standardizer::fit(train, "input");

  // The columns' means and deviations are buffers of the model: saved with the weights.
  Model model([&](Var v) { return linear(silu(linear(silu(linear(scale(v), 64)), 64)), 1); }, {columns});
  Trainer trainer(model, mse(), adamw({.learning_rate = warmup(50_updates).then(cosine(3e-3)), .weight_decay = 1e-3}),
                  {.batch = 64});
  trainer.add_metric("mae", [](Var out, Var target) { return sample_mean(abs(out - target)); });
  trainer.add_host_metric("spearman", spearman);
  const FitResult result = trainer.fit(
      train, test,
      {.duration = 60_epochs, .early_stop = {.monitor = lowest("mae"), .patience = 15, .restore_best = true}});
  std::puts(result.text().c_str());

  const EvaluationResult found = trainer.evaluate(test);
  const double error = std::sqrt(found.loss);
  std::printf("held out: root mean square error %.3f, mean absolute error %.3f, rank correlation %.3f\n", error,
              found.metric("mae"), found.metric("spearman"));
  save_weights(model, "tabular.safetensors");
  return argc == 3 || error < 1.2 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
