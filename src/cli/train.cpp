// brisk train: a known network on images from files and folders, on tables, or on digits drawn by the library.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "brisk/brisk.h"
#include "cli/commands.h"
#include "cli/models.h"
#include "cli/saved_model.h"
#include "cli/training_data.h"

namespace brisk::cli {
namespace {

struct TrainOptions {
  int64_t accumulate = 1;
  int64_t batch = 64;
  DataOptions data;
  std::string device = "cpu";
  double epochs = 5;
  double learning_rate = 0.05;
  ModelChoice model;
  double momentum = 0.9;
  std::string optimizer = "sgd";
  bool picture = false;
  std::string precision = "f32";
  std::string run_folder;
  std::string save;
  std::string schedule = "cosine";
  uint64_t seed = 0;
  bool svg = false;
  int threads = 0;
  int64_t warmup = 0;
  double weight_decay = 5e-4;
  int64_t workers = -1;
};

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

/// Says what became of damaged images, if any.
void report_skipped(const Dataset& dataset) {
  const auto* const images = dynamic_cast<const ImageFolder*>(&dataset);
  if (images == nullptr || images->skipped().count == 0) return;
  const SkippedImages skipped = images->skipped();
  std::printf("%lld images of %s were corrupt and replaced by others; the first: %s (%s)\n",
              static_cast<long long>(skipped.count), images->name().c_str(), skipped.first_path.c_str(),
              skipped.reason.c_str());
}

/// Before training, not after it.
void check_writable(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    throw Error(ErrorCode::file, "--save " + path, "there is no folder " + folder + "; make it first");
  }
  if (access(folder.c_str(), W_OK) != 0) {
    throw Error(ErrorCode::file, "--save " + path, "the folder " + folder + " cannot be written to");
  }
}

int run(const TrainOptions& options) {
  if (!options.save.empty()) check_writable(options.save);
  if (!options.model.name.empty()) find_model(options.model);  // a wrong name is found before data are read
  const TrainingData data = load(options.data, options.model, options.seed);
  Model model = data.saved.make(options.seed);
  const bool classifies = !data.saved.classes.empty();
  Trainer trainer(model, classifies ? cross_entropy() : mse(), optimizer_of(options),
                  {.accumulate = options.accumulate,
                   .batch = options.batch,
                   .device = parse_device(options.device),
                   .precision = parse_precision(options.precision),
                   .threads = options.threads});
  if (classifies) trainer.add_metric("accuracy", accuracy());
  std::printf("%s", trainer.summary().c_str());
  std::fflush(stdout);
  FitOptions fit;
  fit.duration = Duration(options.epochs, Duration::Unit::epochs);
  fit.run_folder = options.run_folder;
  fit.seed = options.seed;
  fit.stop_on_signals = true;
  if (options.workers >= 0) fit.workers = options.workers;
  const FitResult result = trainer.fit(*data.train, *data.validation, fit);
  report_skipped(*data.train);
  report_skipped(*data.validation);
  if (!options.save.empty()) save(data.saved, model, options.save);
  if (options.picture) std::printf("%s", loss_picture(options.run_folder).c_str());
  if (options.svg) std::printf("%s\n", write_loss_svg(options.run_folder).c_str());
  return result.exit_code();
}

}  // namespace

void add_train(CLI::App& app, Outcome& outcome) {
  const auto options = std::make_shared<TrainOptions>();
  CLI::App* const command = app.add_subcommand(
      "train",
      "Trains a network to tell the classes of images, or to predict columns of a table. Without MODEL: lenet for "
      "images in memory, resnet18 for folders of images, mlp for tables.");
  add_model_options(*command, options->model, false);
  add_data_options(*command, options->data);
  command->add_option("--accumulate", options->accumulate, "micro-batches an update")->capture_default_str();
  command->add_option("--batch", options->batch, "samples a micro-batch")->capture_default_str();
  add_device_option(*command, options->device);
  command->add_option("--epochs", options->epochs, "fractions are allowed")->capture_default_str();
  command->add_option("--learning-rate", options->learning_rate, "the peak")->capture_default_str();
  command->add_option("--momentum", options->momentum, "of sgd")->capture_default_str();
  command->add_option("--optimizer", options->optimizer, "sgd, adam or adamw")
      ->check(CLI::IsMember({"sgd", "adam", "adamw"}))
      ->capture_default_str();
  command->add_option("--precision", options->precision, "f32, bf16, fp16 or automatic")->capture_default_str();
  command->add_option("--schedule", options->schedule, "constant or cosine")
      ->check(CLI::IsMember({"constant", "cosine"}))
      ->capture_default_str();
  command->add_option("--warmup", options->warmup, "updates of linear warm-up")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--weight-decay", options->weight_decay, "on parameters of two or more dimensions")
      ->capture_default_str();
  command->add_option("--save", options->save,
                      "write the weights, and what brisk predict needs, to this .safetensors file at the end");
  command->add_option("--seed", options->seed, "of initial values and sample order")->capture_default_str();
  command->add_option("--threads", options->threads, "0: all that this process may use")->capture_default_str();
  command->add_option("--workers", options->workers, "threads that read and decode ahead; by default as many as pay")
      ->check(CLI::NonNegativeNumber);
  CLI::Option* const folder = command->add_option("--run-folder", options->run_folder, "events.jsonl is appended here");
  command->add_flag("--picture", options->picture, "draw the loss at the end")->needs(folder);
  command->add_flag("--svg", options->svg, "write loss.svg into the run folder")->needs(folder);
  command->callback([options, &outcome] { outcome.code = run(*options); });
}

}  // namespace brisk::cli
