// A generative adversarial network (Goodfellow et al. 2014; the convolutional form of Radford et al. 2015) that learns
// to draw digits. Two models, two compiled steps: each objective calls both models and changes one. A classifier judges
// the drawings by the score of Salimans et al. 2016, exp(mean KL(p(digit | drawing) || p(digit))): 1 when it sees
// nothing or always the same, at most 10. Ends with 1 unless the score is above 5. Writes the drawings to drawings.pgm.
//   gan [ROUNDS]
#include <brisk/brisk.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace brisk;

namespace {

constexpr int64_t kNoise = 32, kBatch = 64;

Var generator(Var z) {  // [N, 32] to [N, 1, 28, 28] in (0, 1)
  z = reshape(relu(batch_norm(linear(z, 64 * 7 * 7, {.bias = false}))), {-1, 64, 7, 7});
  z = relu(batch_norm(conv_transpose2d(z, {.bias = false, .channels = 32, .kernel = 4, .padding = 1, .stride = 2})));
  return sigmoid(conv_transpose2d(z, {.channels = 1, .kernel = 4, .padding = 1, .stride = 2}));
}

Var discriminator(Var x) {  // the logit of being real
  x = leaky_relu(conv2d(x, {.channels = 32, .kernel = 4, .padding = 1, .stride = 2}), 0.2);
  x = leaky_relu(batch_norm(conv2d(x, {.bias = false, .channels = 64, .kernel = 4, .padding = 1, .stride = 2})), 0.2);
  return linear(flatten(x), 1);
}

/// exp(mean over rows of KL(p || mean of all p)); p: [n, 10].
double score(const std::vector<float>& p) {
  const size_t n = p.size() / 10;
  double mean[10] = {}, total = 0;
  for (size_t i = 0; i < p.size(); ++i) mean[i % 10] += p[i] / static_cast<double>(n);
  for (size_t i = 0; i < p.size(); ++i) total += p[i] > 0 ? p[i] * std::log(p[i] / mean[i % 10]) : 0;
  return std::exp(total / static_cast<double>(n));
}

/// `rows` x `rows` drawings as one grey image.
void write_pgm(const char* path, const std::vector<float>& images, int64_t rows) {
  std::FILE* const file = std::fopen(path, "wb");
  if (file == nullptr) return;
  std::fprintf(file, "P5 %lld %lld 255\n", static_cast<long long>(28 * rows), static_cast<long long>(28 * rows));
  for (int64_t y = 0; y < 28 * rows; ++y) {
    for (int64_t x = 0; x < 28 * rows; ++x) {
      const int64_t at = ((y / 28 * rows + x / 28) * 28 + y % 28) * 28 + x % 28;
      std::fputc(static_cast<int>(255 * images[static_cast<size_t>(at)]), file);
    }
  }
  std::fclose(file);
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t rounds = argc > 1 ? std::atoll(argv[1]) : 600;
  const InMemoryDataset digits = data::drawn_digits(8192, 1);
  Model g(generator, {kNoise}, {.name = "generator"}), d(discriminator, {1, 28, 28}, {.name = "discriminator"});

  const Optimizer optimizer = adam({.betas = {0.5, 0.999}, .learning_rate = 1e-3});
  Step train_d(
      [&](const Vars& in) {
        return bce_with_logits(d(in["image"]), 1.0, {.name = "real"}) +
               bce_with_logits(d(g(random_normal({kNoise}))), 0.0, {.name = "drawn"});
      },
      {{"image", {1, 28, 28}}}, optimizer, {.batch = kBatch, .update = {&d}});  // no gradient is made or kept for g
  Step train_g([&](const Vars&) { return bce_with_logits(d(g(random_normal({kNoise}))), 1.0); }, {}, optimizer,
               {.batch = kBatch, .update = {&g}});

  Loader loader(digits, {.batch = kBatch, .drop_last = true, .shuffle = true});
  for (int64_t round = 0, epoch = 0; round < rounds; ++epoch) {
    for (const Batch& batch : loader.epoch(epoch)) {
      if (round++ >= rounds) break;
      train_d.run({{"image", batch["input"]}});
      train_g.run(batch.size());
    }
    std::printf("round %lld: loss of the discriminator %.3f, of the generator %.3f\n",
                static_cast<long long>(std::min(round, rounds)), train_d.read().loss, train_g.read().loss);
  }

  Model judge([](Var x) { return models::lenet()(Vars{{"input", x}})["output"]; }, {1, 28, 28});
  Trainer trainer(judge, cross_entropy(), adamw({.learning_rate = 1e-3}), {.batch = kBatch});
  trainer.fit(digits, {.duration = 2_epochs, .progress = false});

  // Both models in one: noise in, drawing and the judge's opinion out.
  Model seen(
      [&](const Vars& in) {
        const Var drawing = g(in["noise"]);
        return Vars{{"drawing", drawing}, {"opinion", softmax(judge(drawing))}};
      },
      Inputs{{"noise", {kNoise}}});
  constexpr int64_t n = 1024;
  std::vector<float> noise(n * kNoise), drawings(n * 28 * 28), opinions(n * 10);
  Random random(7, 0, 0);
  for (float& value : noise) value = random.normal();
  const Predictor predictor(seen, {.batches = {64}});
  predictor.run({{"noise", view(noise, {n, kNoise})}},
                {{"drawing", view(drawings, {n, 1, 28, 28})}, {"opinion", view(opinions, {n, 10})}});
  write_pgm("drawings.pgm", drawings, 8);
  std::printf("score of the drawings: %.2f of 10\n", score(opinions));
  return score(opinions) > 5 ? 0 : 1;
}
