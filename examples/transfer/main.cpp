// Transfer learning: a residual network learns the digits 0 to 4 from many samples; its weights, but for the last
// layer, are then the start for 5 to 9, of which there are only a hundred: first with most layers frozen, then with
// all. Ends with 1 unless that beats learning from the hundred alone.
#include <brisk/brisk.h>

#include <cstdio>
#include <vector>

using namespace brisk;

namespace {

/// `count` drawn digits of [first, first + 5), labelled 0 to 4.
InMemoryDataset five_digits(int64_t first, int64_t count, uint64_t seed) {
  const InMemoryDataset all = data::drawn_digits(3 * count, seed);
  Batch every(all.fields(), all.size());
  std::vector<int64_t> indices(static_cast<size_t>(all.size()));
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int64_t>(i);
  all.rows(indices, every);
  const ConstView images = every["input"], labels = every["target"];
  const int64_t pixels = images.count() / all.size();
  std::vector<float> x;
  std::vector<int64_t> y;
  for (int64_t i = 0; i < all.size() && std::ssize(y) < count; ++i) {
    const int64_t label = labels.data<int64_t>()[i] - first;
    if (label < 0 || label >= 5) continue;
    x.insert(x.end(), images.data<float>() + i * pixels, images.data<float>() + (i + 1) * pixels);
    y.push_back(label);
  }
  InMemoryDataset chosen;
  const int64_t n = std::ssize(y);
  chosen.add("input", Tensor(std::move(x), {n, 1, 28, 28}));
  chosen.add("target", Tensor(std::move(y), {n}));
  return chosen;
}

double accuracy_of(Trainer& trainer, const Dataset& test) { return trainer.evaluate(test).metric("accuracy"); }

Trainer make_trainer(Model& model, Optimizer optimizer) {
  Trainer trainer(model, cross_entropy(), std::move(optimizer), {.batch = 20});
  trainer.add_metric("accuracy", accuracy());
  return trainer;
}

}  // namespace

int main() {
  const InMemoryDataset many = five_digits(0, 4000, 1), few = five_digits(5, 100, 2), test = five_digits(5, 1000, 3);
  const ModelFunction network = models::resnet_cifar({.classes = 5});
  constexpr const char* kFile = "digits.safetensors";
  {
    Model model(network, {1, 28, 28});
    Trainer trainer = make_trainer(model, adamw({.learning_rate = cosine(3e-3)}));
    trainer.fit(many, {.duration = 2_epochs});
    save_weights(model, kFile);
  }

  Model scratch(network, {1, 28, 28}, {.seed = 1});
  Trainer alone = make_trainer(scratch, adamw({.learning_rate = cosine(3e-3)}));
  alone.fit(few, {.duration = 15_epochs, .progress = false});

  Model model(network, {1, 28, 28}, {.seed = 1});
  const LoadReport got = load_weights(model, kFile, {.skip = {"fc.*"}});  // fc keeps its fresh initial values
  model.freeze({"conv1.*", "bn1.*", "layer1.*", "layer2.*"});             // batch-norm statistics stop there too
  Trainer trainer =
      make_trainer(model, adamw({.groups = {{.learning_rate_scale = 10, .match = "fc.*"}}, .learning_rate = 3e-4}));
  std::puts(trainer.summary().c_str());
  trainer.fit(few, {.duration = 10_epochs, .progress = false});
  const double frozen = accuracy_of(trainer, test);
  model.unfreeze({"*"});
  trainer.fit(few, {.duration = 15_epochs, .progress = false});  // 5 more: a duration counts from the start

  const double transferred = accuracy_of(trainer, test), fresh = accuracy_of(alone, test);
  std::printf("%lld tensors taken over; on new digits: from scratch %.3f, last layers only %.3f, all layers %.3f\n",
              static_cast<long long>(got.loaded.size()), fresh, frozen, transferred);
  return transferred > fresh + 0.1 && transferred > 0.8 ? 0 : 1;
}
