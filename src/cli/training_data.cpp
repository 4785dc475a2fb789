// Data from files and folders of every kind that is known.
#include "cli/training_data.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "brisk/augment.h"
#include "brisk/images.h"
#include "brisk/loader.h"
#include "brisk/tabular.h"

namespace brisk::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDrawnTrain = 20000;
constexpr int64_t kDrawnTest = 4000;
constexpr int64_t kSmallImage = 64;  // up to here crops keep an object's size

data::TrainTest drawn() {
  data::TrainTest out{data::drawn_digits(kDrawnTrain, 0), data::drawn_digits(kDrawnTest, 1)};
  out.train.set_name("drawn digits, train");
  out.test.set_name("drawn digits, test");
  return out;
}

data::TrainTest fashion_mnist_or_drawn() {
  try {
    return data::fashion_mnist();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::file) throw;
    std::printf("no Fashion-MNIST here, drawing digits instead (%s)\n", error.what());
    return drawn();
  }
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool has_any(const std::string& folder, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* name) {
    return is_there(fs::path(folder) / name) || is_there(fs::path(folder) / (std::string(name) + ".gz"));
  });
}

bool has_folders(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->is_directory(error)) return true;
  }
  return false;
}

/// Classes are 0 .. the largest.
std::vector<std::string> numbered_classes(const Dataset& dataset) {
  int64_t most = 0;
  Loader loader(dataset, {.batch = 1024});
  for (const Batch& batch : loader.epoch(0)) {
    const int64_t* labels = batch["target"].data<int64_t>();
    most = std::max(most, *std::max_element(labels, labels + batch.size()));
  }
  std::vector<std::string> out;
  for (int64_t i = 0; i <= most; ++i) out.push_back(std::to_string(i));
  return out;
}

std::vector<int64_t> numbers(const Shape& shape) { return {shape.begin(), shape.end()}; }

void set_outputs(SavedModel& saved, const ModelChoice& choice, const char* name, int64_t outputs) {
  saved.choice = choice;
  if (choice.name.empty()) saved.choice.name = name;
  saved.choice.classes = outputs;
}

/// Images in memory. crop: padded by an eighth, cut at random and mirrored.
TrainingData in_memory(data::TrainTest found, const ModelChoice& choice, bool crop) {
  TrainingData out;
  out.saved.classes = numbered_classes(found.train);
  set_outputs(out.saved, choice, "lenet", static_cast<int64_t>(out.saved.classes.size()));
  const Shape stored = found.train.fields()[0].shape;
  out.saved.input = numbers(choice.input.empty() ? stored : find_model(out.saved.choice).input);
  out.saved.resize = stored.rank() == 3 ? std::max(stored[1], stored[2]) : 0;
  out.train = std::make_unique<InMemoryDataset>(std::move(found.train));
  out.validation = std::make_unique<InMemoryDataset>(std::move(found.test));
  if (!crop) return out;
  out.parts.push_back(std::move(out.train));
  const int64_t padding = stored[1] / 8;
  out.train = std::make_unique<Augmented>(*out.parts.back(), "input", [padding](View image, Random& random) {
    Tensor whole(image.shape(), image.dtype());
    std::copy_n(image.data<float>(), image.count(), whole.data<float>());
    augment::random_crop(whole, image, padding, random);
    augment::random_flip(image, random);
  });
  return out;
}

/// The share of the first part when the second is for validation.
SplitOptions split_options(const DataOptions& options, uint64_t seed) {
  if (!(options.validation > 0 && options.validation < 1)) {
    throw Error(ErrorCode::option, "--validation " + std::to_string(options.validation), "must be above 0 and below 1");
  }
  return {.first = 1 - options.validation, .seed = seed};
}

TrainingData image_folders(const DataOptions& options, const ModelChoice& choice, uint64_t seed) {
  TrainingData out;
  set_outputs(out.saved, choice, "resnet18", 0);
  const Shape shape = find_model(out.saved.choice).input;
  ImageOptions evaluation;
  evaluation.size = ImageSize(shape[1], shape[2]);
  if (options.skip_corrupt > 0) {
    evaluation.corrupt = CorruptImage::skip;
    evaluation.corrupt_limit = options.skip_corrupt;
  }
  const int64_t longer = std::max(shape[1], shape[2]);
  if (longer <= kSmallImage) evaluation.resize = longer + longer / 8;
  ImageOptions training = evaluation;
  const bool small = longer <= kSmallImage;
  if (options.augment == "crop" || (options.augment == "automatic" && small)) training.form = ImageForm::random_crop;
  if (options.augment == "resized-crop" || (options.augment == "automatic" && !small)) {
    training.form = ImageForm::random_resized_crop;
  }
  const auto sets = [&]() -> std::pair<ImageFolder, ImageFolder> {
    for (const char* name : {"val", "validation", "test"}) {
      const fs::path held_out = fs::path(options.data) / name;
      if (!is_there(held_out)) continue;
      return {data::image_folder((fs::path(options.data) / "train").string(), training),
              data::image_folder(held_out.string(), evaluation)};
    }
    const bool has_train = is_there(fs::path(options.data) / "train");
    const std::string folder = has_train ? (fs::path(options.data) / "train").string() : options.data;
    const ImageFolderSplit parts = data::image_folder(folder, training).split(split_options(options, seed));
    return {parts.first, parts.second.with(evaluation)};
  };
  const auto [train, validation] = sets();
  if (train.classes() != validation.classes()) {
    throw Error(ErrorCode::data, validation.name(), "has other classes (folders) than " + train.name());
  }
  out.saved.classes = train.classes();
  out.saved.choice.classes = static_cast<int64_t>(out.saved.classes.size());
  out.saved.input = {3, shape[1], shape[2]};
  out.saved.resize = evaluation.resize;
  out.saved.bytes = true;
  out.train = std::make_unique<ImageFolder>(train);
  out.validation = std::make_unique<ImageFolder>(validation);
  return out;
}

TrainingData table(const DataOptions& options, const ModelChoice& choice, uint64_t seed) {
  if (options.targets.empty()) {
    throw Error(ErrorCode::option, "--target", "is missing: the column or columns of a table that are to be predicted");
  }
  if (!choice.name.empty() && choice.name != "mlp") {
    throw Error(ErrorCode::option, "model \"" + choice.name + "\"", "takes images; a table trains mlp");
  }
  Table found =
      data::csv(options.data, {.classes = options.classes, .ignore = options.ignore, .targets = options.targets});
  auto [train, validation] = found.samples.split(split_options(options, seed));
  const Standardizer inputs = Standardizer::fit(train);
  train = inputs.apply(train);
  validation = inputs.apply(validation);
  TrainingData out;
  SavedModel& saved = out.saved;
  if (options.classes) {
    saved.classes = numbered_classes(found.samples);
    set_outputs(saved, choice, "mlp", static_cast<int64_t>(saved.classes.size()));
  } else {
    const Standardizer targets = Standardizer::fit(train, "target");
    train = targets.apply(train, "target");
    validation = targets.apply(validation, "target");
    saved.target_mean = targets.mean();
    saved.target_deviation = targets.deviation();
    set_outputs(saved, choice, "mlp", static_cast<int64_t>(found.targets.size()));
    std::printf("targets are brought to mean 0 and deviation 1: the loss is in squares of their deviation\n");
  }
  saved.input = {static_cast<int64_t>(found.inputs.size())};
  saved.inputs = found.inputs;
  saved.targets = found.targets;
  saved.mean = inputs.mean();
  saved.deviation = inputs.deviation();
  out.train = std::make_unique<InMemoryDataset>(std::move(train));
  out.validation = std::make_unique<InMemoryDataset>(std::move(validation));
  return out;
}

/// An option that says nothing about this kind of data is no wish that can be kept.
void refuse_foreign_options(const DataOptions& options, bool is_table, bool is_folder) {
  const auto refuse = [](bool given, const char* option, const char* what) {
    if (given) throw Error(ErrorCode::option, option, std::string("is for ") + what + ", which --data is not");
  };
  if (!is_table) {
    refuse(!options.targets.empty(), "--target", "a table (.csv)");
    refuse(options.classes, "--classes", "a table (.csv)");
    refuse(!options.ignore.empty(), "--ignore", "a table (.csv)");
  }
  if (!is_folder) refuse(options.skip_corrupt > 0, "--skip-corrupt", "a folder of images");
}

}  // namespace

void add_data_options(CLI::App& command, DataOptions& options) {
  command
      .add_option("--data", options.data,
                  "auto (Fashion-MNIST, else drawn digits), digits, fashion-mnist, cifar10, cifar100; a .csv file; a "
                  "folder with the files of Fashion-MNIST or CIFAR; or a folder of images with one folder a class, "
                  "itself or in train/ and val/")
      ->capture_default_str();
  command
      .add_option("--augment", options.augment,
                  "of coloured images: none, crop (and mirror), resized-crop (and mirror), or automatic")
      ->check(CLI::IsMember({"automatic", "crop", "none", "resized-crop"}))
      ->capture_default_str();
  command.add_flag("--classes", options.classes, "of a table: the target column holds class numbers 0, 1, ...");
  command.add_option("--ignore", options.ignore, "of a table: columns that are not read, separated by commas")
      ->delimiter(',');
  command.add_option("--skip-corrupt", options.skip_corrupt,
                     "replace damaged images by others, up to this share of all; 0: fail at the first");
  command.add_option("--target", options.targets, "of a table: the columns to predict, separated by commas")
      ->delimiter(',');
  command
      .add_option("--validation", options.validation,
                  "share of a table, or of images without val/, that is held out and measured")
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

TrainingData load(const DataOptions& options, const ModelChoice& choice, uint64_t seed) {
  const bool crop = options.augment == "automatic" || options.augment == "crop";
  const std::string& data = options.data;
  std::error_code ignored;
  const bool is_table = options.train_images.empty() && fs::is_regular_file(data, ignored);
  const bool is_folder = !is_table && has_folders(data) && !has_any(data, {"cifar-10-batches-bin", "cifar-100-binary"});
  refuse_foreign_options(options, is_table, is_folder);
  if (!options.train_images.empty()) {
    return in_memory(
        {data::idx(options.train_images, options.train_labels), data::idx(options.test_images, options.test_labels)},
        choice, false);
  }
  if (data == "auto") return in_memory(fashion_mnist_or_drawn(), choice, false);
  if (data == "digits") return in_memory(drawn(), choice, false);
  if (data == "fashion-mnist") return in_memory(data::fashion_mnist(), choice, false);
  if (data == "cifar10") return in_memory(data::cifar10(), choice, crop);
  if (data == "cifar100") return in_memory(data::cifar100(), choice, crop);
  if (!is_there(data)) {
    throw Error(ErrorCode::file, "--data " + data, "there is no such file or folder, and no data set of this name");
  }
  if (is_table) return table(options, choice, seed);
  if (has_any(data, {"data_batch_1.bin", "cifar-10-batches-bin"})) return in_memory(data::cifar10(data), choice, crop);
  if (has_any(data, {"train.bin", "cifar-100-binary"})) return in_memory(data::cifar100(data), choice, crop);
  if (is_folder) return image_folders(options, choice, seed);
  return in_memory(data::fashion_mnist(data), choice, false);
}

}  // namespace brisk::cli
