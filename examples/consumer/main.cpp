// One training step of a tiny network on four samples of the program's own: what an outside project needs to get going.
#include <brisk/brisk.h>

#include <cstdint>
#include <cstdio>
#include <vector>

using namespace brisk;

int main() {
  const std::vector<float> points = {0, 0, 0, 1, 1, 0, 1, 1};  // [4, 2]
  const std::vector<int64_t> labels = {0, 1, 1, 0};            // exclusive or
  try {
    Model model([](Var x) { return linear(relu(linear(x, 16)), 2); }, {2});
    Step step(model, cross_entropy(), sgd({.learning_rate = 0.1, .momentum = 0.9}), {.batch = 4});
    step.run(view(points, {4, 2}), view(labels, {4}));
    const StepTotals totals = step.read();
    std::printf("%lld update, loss %.4f\n", static_cast<long long>(totals.clock.updates), totals.loss);
    return totals.clock.updates == 1 && totals.loss > 0 && totals.loss < 5 ? 0 : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
