// A training loop of one's own around a compiled step, on data that the program makes itself: two spirals, one inside
// the other. Ends with 1 unless it tells more than 95 % of fresh points apart.
#include <brisk/brisk.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

using namespace brisk;

namespace {

struct Points {
  std::vector<float> x;         // [n, 2]
  std::vector<int64_t> labels;  // [n]: which spiral
};

Points two_spirals(int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> along(0.05f, 1);
  std::normal_distribution<float> noise(0, 0.015f);
  Points points;
  for (int64_t i = 0; i < n; ++i) {
    const float t = std::sqrt(along(random)), angle = 9 * t + (i % 2 == 0 ? 0 : 3.14159265f);
    points.x.push_back(t * std::cos(angle) + noise(random));
    points.x.push_back(t * std::sin(angle) + noise(random));
    points.labels.push_back(i % 2);
  }
  return points;
}

}  // namespace

int main() {
  constexpr int64_t n = 2000;
  const Points train = two_spirals(n, 1), test = two_spirals(1000, 2);
  Model model([](Var v) { return linear(relu(linear(relu(linear(v, 64)), 64)), 2); }, {2});
  Step step(model, cross_entropy(),
            adamw({.learning_rate = warmup(50_updates).then(cosine(0.01, {.over = 1850_updates}))}),
            {.accumulate = 2, .batch = 32});
  step.add_metric("accuracy", accuracy());

  const ConstView x = view(train.x, {n, 2}), y = view(train.labels, {n});  // no copies
  for (int epoch = 1; epoch <= 60; ++epoch) {
    for (int64_t i = 0; i < n; i += 32) {
      const int64_t rows = std::min<int64_t>(32, n - i);  // the short tail gets a plan of its own: exact, not padded
      step.run(x.rows(i, rows), y.rows(i, rows));         // an update every second call
    }
    step.flush();                           // an open window steps now
    const StepTotals totals = step.read();  // exact means since the last read
    if (epoch % 10 == 0) {
      std::printf("epoch %d, %lld updates: loss %.4f, accuracy %.3f, rate %g\n", epoch,
                  static_cast<long long>(totals.clock.updates), totals.loss, totals.metrics[0].value(),
                  totals.learning_rate);
    }
  }

  for (int64_t i = 0; i < 1000; i += 32) {
    const int64_t rows = std::min<int64_t>(32, 1000 - i);
    step.evaluate(
        {{"input", view(test.x, {1000, 2}).rows(i, rows)}, {"target", view(test.labels, {1000}).rows(i, rows)}});
  }
  const double found = step.read_evaluation().metrics[0].value();
  std::printf("fresh points: accuracy %.3f\n", found);
  return found > 0.95 ? 0 : 1;
}
