// brisk train: a known network on images from files, from Debian's package, or drawn by the library.
#include <cstdio>
#include <memory>

#include "brisk/brisk.h"
#include "cli/commands.h"
#include "cli/models.h"

namespace brisk::cli {
namespace {

constexpr int64_t kDrawnTrain = 20000;
constexpr int64_t kDrawnTest = 4000;

struct TrainOptions {
  int64_t accumulate = 1;
  int64_t batch = 64;
  std::string data = "auto";
  double epochs = 5;
  double learning_rate = 0.05;
  ModelChoice model;
  double momentum = 0.9;
  std::string optimizer = "sgd";
  bool picture = false;
  std::string run_folder;
  std::string save;
  std::string schedule = "cosine";
  uint64_t seed = 0;
  bool svg = false;
  std::string test_images, test_labels, train_images, train_labels;
  int threads = 0;
  int64_t warmup = 0;
  double weight_decay = 5e-4;
};

data::TrainTest drawn() {
  data::TrainTest out{data::drawn_digits(kDrawnTrain, 0), data::drawn_digits(kDrawnTest, 1)};
  out.train.set_name("drawn digits, train");
  out.test.set_name("drawn digits, test");
  return out;
}

data::TrainTest load(const TrainOptions& options) {
  if (!options.train_images.empty()) {
    return {data::idx(options.train_images, options.train_labels), data::idx(options.test_images, options.test_labels)};
  }
  if (options.data == "digits") return drawn();
  if (options.data == "fashion-mnist") return data::fashion_mnist();
  if (options.data != "auto") return data::fashion_mnist(options.data);
  try {
    return data::fashion_mnist();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::file) throw;
    std::printf("no Fashion-MNIST here, drawing digits instead (%s)\n", error.what());
    return drawn();
  }
}

Schedule rate_of(const TrainOptions& options) {
  Schedule rate = options.learning_rate;
  if (options.schedule == "cosine") rate = cosine(options.learning_rate);
  if (options.warmup == 0) return rate;
  return warmup(Duration(static_cast<double>(options.warmup), Duration::Unit::updates)).then(rate);
}

Optimizer optimizer_of(const TrainOptions& options) {
  const Schedule rate = rate_of(options);
  if (options.optimizer == "adam") return adam({.learning_rate = rate, .weight_decay = options.weight_decay});
  if (options.optimizer == "adamw") return adamw({.learning_rate = rate, .weight_decay = options.weight_decay});
  return sgd({.learning_rate = rate, .momentum = options.momentum, .weight_decay = options.weight_decay});
}

int run(const TrainOptions& options) {
  const NamedModel named = find_model(options.model);
  const data::TrainTest data = load(options);
  Model model(named.function, named.input, {.seed = options.seed});
  Trainer trainer(model, cross_entropy(), optimizer_of(options),
                  {.accumulate = options.accumulate, .batch = options.batch, .threads = options.threads});
  trainer.add_metric("accuracy", accuracy());
  std::printf("%s", trainer.summary().c_str());
  std::fflush(stdout);
  const FitResult result = trainer.fit(data.train, data.test,
                                       {.duration = Duration(options.epochs, Duration::Unit::epochs),
                                        .run_folder = options.run_folder,
                                        .seed = options.seed,
                                        .stop_on_signals = true});
  if (!options.save.empty()) save_weights(model, options.save);
  if (options.picture) std::printf("%s", loss_picture(options.run_folder).c_str());
  if (options.svg) std::printf("%s\n", write_loss_svg(options.run_folder).c_str());
  return result.exit_code();
}

void add_data_options(CLI::App& command, TrainOptions& options) {
  command
      .add_option(
          "--data", options.data,
          "auto (Fashion-MNIST, else drawn digits), fashion-mnist, digits, or a folder with Fashion-MNIST's files")
      ->capture_default_str();
  CLI::Option* const a = command.add_option("--train-images", options.train_images, "IDX file, plain or gzip");
  CLI::Option* const b = command.add_option("--train-labels", options.train_labels, "IDX file");
  CLI::Option* const c = command.add_option("--test-images", options.test_images, "IDX file");
  CLI::Option* const d = command.add_option("--test-labels", options.test_labels, "IDX file");
  for (CLI::Option* const option : {a, b, c, d}) {
    for (CLI::Option* const other : {a, b, c, d}) {
      if (option != other) option->needs(other);
    }
  }
}

}  // namespace

void add_train(CLI::App& app, Outcome& outcome) {
  const auto options = std::make_shared<TrainOptions>();
  CLI::App* const command = app.add_subcommand("train", "Trains a network on images of ten classes.");
  add_model_options(*command, options->model, false);
  add_data_options(*command, *options);
  command->add_option("--accumulate", options->accumulate, "micro-batches an update")->capture_default_str();
  command->add_option("--batch", options->batch, "samples a micro-batch")->capture_default_str();
  command->add_option("--epochs", options->epochs, "fractions are allowed")->capture_default_str();
  command->add_option("--learning-rate", options->learning_rate, "the peak")->capture_default_str();
  command->add_option("--momentum", options->momentum, "of sgd")->capture_default_str();
  command->add_option("--optimizer", options->optimizer, "sgd, adam or adamw")
      ->check(CLI::IsMember({"sgd", "adam", "adamw"}))
      ->capture_default_str();
  command->add_option("--schedule", options->schedule, "constant or cosine")
      ->check(CLI::IsMember({"constant", "cosine"}))
      ->capture_default_str();
  command->add_option("--warmup", options->warmup, "updates of linear warm-up")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--weight-decay", options->weight_decay, "on parameters of two or more dimensions")
      ->capture_default_str();
  command->add_option("--save", options->save, "write the weights to this .safetensors file at the end");
  command->add_option("--seed", options->seed, "of initial values and sample order")->capture_default_str();
  command->add_option("--threads", options->threads, "0: all that this process may use")->capture_default_str();
  CLI::Option* const folder = command->add_option("--run-folder", options->run_folder, "events.jsonl is appended here");
  command->add_flag("--picture", options->picture, "draw the loss at the end")->needs(folder);
  command->add_flag("--svg", options->svg, "write loss.svg into the run folder")->needs(folder);
  command->callback([options, &outcome] { outcome.code = run(*options); });
}

}  // namespace brisk::cli
