// brisk predict: what a trained network says of images or of the rows of a table.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "brisk/brisk.h"
#include "cli/commands.h"
#include "cli/saved_model.h"

namespace brisk::cli {
namespace {

namespace fs = std::filesystem;

struct PredictOptions {
  int64_t batch = 32;
  std::vector<std::string> inputs;
  bool json = false;
  int threads = 0;
  int64_t top = 1;
  std::string weights;
};

/// Images of the size and channels that a model takes.
class Images : public Dataset {
 public:
  Images(std::vector<std::string> paths, const SavedModel& saved) : paths_(std::move(paths)), saved_(saved) {
    options_.channels_first = !saved.bytes;
    options_.dtype = saved.bytes ? DType::u8 : DType::f32;
    options_.resize = saved.resize;
    options_.size = ImageSize(saved.input[1], saved.input[2]);
  }
  int64_t size() const override { return static_cast<int64_t>(paths_.size()); }
  std::vector<Field> fields() const override { return {saved_.field()}; }
  std::string name() const override { return "the images"; }
  const std::string& path(int64_t index) const { return paths_[static_cast<size_t>(index)]; }
  void read(int64_t index, Sample& out, Random&) const override {
    const Tensor image = data::read_image(path(index), options_);
    const View row = out["input"];
    if (row.count() == image.count()) {
      std::memcpy(row.raw(), ConstView(image).raw(), row.bytes().size());
      return;
    }
    const float* from = image.data<float>();
    float* to = row.data<float>();
    const int64_t area = row.count();
    // Grey as ITU-R BT.601 has it.
    for (int64_t i = 0; i < area; ++i) {
      to[i] = 0.299f * from[i] + 0.587f * from[area + i] + 0.114f * from[2 * area + i];
    }
  }

 private:
  std::vector<std::string> paths_;
  const SavedModel& saved_;
  ImageOptions options_;
};

/// Files as they were named; of a folder, its images in order.
std::vector<std::string> image_paths(const std::vector<std::string>& inputs) {
  std::vector<std::string> out;
  for (const std::string& input : inputs) {
    std::error_code error;
    if (!fs::is_directory(input, error)) {
      out.push_back(input);
      continue;
    }
    std::vector<std::string> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(input)) {
      std::string ending = entry.path().extension().string();
      std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
      if (ending == ".jpg" || ending == ".jpeg" || ending == ".png") found.push_back(entry.path().string());
    }
    if (found.empty()) throw Error(ErrorCode::file, input, "holds no .jpg, .jpeg or .png file");
    std::sort(found.begin(), found.end());
    out.insert(out.end(), found.begin(), found.end());
  }
  return out;
}

/// One prediction: the most probable classes, or the numbers of a regression.
class Output {
 public:
  Output(const PredictOptions& options, const SavedModel& saved) : options_(options), saved_(saved) {
    if (!options.json && !saved.is_table()) return;
    if (!options.json && saved.classes.empty()) {
      std::string line;
      for (const std::string& target : saved.targets) line += (line.empty() ? "" : "\t") + target;
      std::printf("%s\n", line.c_str());
    }
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void classes(const nlohmann::ordered_json& input, const float* logits) {
    const size_t count = saved_.classes.size();
    const float most = *std::max_element(logits, logits + count);
    std::vector<double> probabilities(count);
    double sum = 0;
    for (size_t i = 0; i < count; ++i) sum += probabilities[i] = std::exp(static_cast<double>(logits[i] - most));
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return probabilities[a] > probabilities[b]; });
    order.resize(std::min(count, static_cast<size_t>(options_.top)));
    nlohmann::ordered_json found = nlohmann::ordered_json::array();
    for (const size_t i : order) {
      found.push_back({{"class", saved_.classes[i]}, {"probability", probabilities[i] / sum}});
      if (options_.json) continue;
      const std::string shown = input.is_string() ? input.get<std::string>() : input.dump();
      std::printf("%s\t%s\t%.4f\n", shown.c_str(), saved_.classes[i].c_str(), probabilities[i] / sum);
    }
    if (options_.json) rows_.push_back({{"input", input}, {"classes", std::move(found)}});
  }

  void numbers(int64_t row, const float* values) {
    nlohmann::ordered_json found;
    for (size_t i = 0; i < saved_.targets.size(); ++i) {
      found[saved_.targets[i]] = values[i];
      if (!options_.json) std::printf("%s%.9g", i > 0 ? "\t" : "", static_cast<double>(values[i]));
    }
    if (!options_.json) std::printf("\n");
    if (options_.json) rows_.push_back({{"input", row}, {"values", std::move(found)}});
  }

  void finish() {
    if (options_.json)
      std::printf("%s\n", rows_.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  }

 private:
  const PredictOptions& options_;
  const SavedModel& saved_;
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
};

/// Calls back with the outputs of each sample, in order.
template <class Each>
void predict_all(const PredictOptions& options, const SavedModel& saved, const Dataset& dataset, const Each& each) {
  Model model = saved.make(0);
  load_weights(model, options.weights);
  const Predictor predictor(model, {.batches = {1, options.batch}, .threads = options.threads});
  Tensor out({options.batch, saved.choice.classes});
  Loader loader(dataset, {.batch = options.batch, .workers = saved.is_table() ? 0 : 2});
  for (const Batch& batch : loader.epoch(0)) {
    const View rows = View(out).rows(0, batch.size());
    predictor.run(batch["input"], rows);
    for (int64_t i = 0; i < batch.size(); ++i) {
      each(batch.indices()[static_cast<size_t>(i)], rows.data<float>() + i * saved.choice.classes);
    }
  }
}

void predict_table(const PredictOptions& options, const SavedModel& saved) {
  if (options.inputs.size() != 1) {
    throw Error(ErrorCode::option, "INPUT", "must be one .csv file for a model that was trained on a table");
  }
  const Table table = data::csv(options.inputs[0], {.inputs = saved.inputs});
  const InMemoryDataset samples = Standardizer(saved.mean, saved.deviation).apply(table.samples);
  Output output(options, saved);
  predict_all(options, saved, samples, [&](int64_t index, float* values) {
    if (!saved.classes.empty()) return output.classes(index + 1, values);
    const int64_t count = saved.choice.classes;
    Standardizer(saved.target_mean, saved.target_deviation).undo(View(values, {1, count}));
    output.numbers(index + 1, values);
  });
  output.finish();
}

void run(const PredictOptions& options) {
  if (options.batch < 1)
    throw Error(ErrorCode::option, "--batch " + std::to_string(options.batch), "must be at least 1");
  const SavedModel saved = read_saved(options.weights);
  if (saved.is_table()) return predict_table(options, saved);
  const Images images(image_paths(options.inputs), saved);
  Output output(options, saved);
  predict_all(options, saved, images,
              [&](int64_t index, const float* logits) { output.classes(images.path(index), logits); });
  output.finish();
}

}  // namespace

void add_predict(CLI::App& app, Outcome&) {
  const auto options = std::make_shared<PredictOptions>();
  CLI::App* const command = app.add_subcommand(
      "predict",
      "Predicts with weights that brisk train --save wrote. For images, and tables of classes: a line each "
      "with file or row number, class, probability. For other tables: the targets, a line a row.");
  command->add_option("WEIGHTS", options->weights, "a .safetensors file of brisk train")->required();
  command->add_option("INPUT", options->inputs, "image files or folders of them, or one .csv file")->required();
  command->add_option("--batch", options->batch, "samples at once")->capture_default_str();
  command->add_flag("--json", options->json, "one JSON array");
  command->add_option("--threads", options->threads, "0: all that this process may use")->capture_default_str();
  command->add_option("--top", options->top, "how many classes to show of each input")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->callback([options] { run(*options); });
}

}  // namespace brisk::cli
