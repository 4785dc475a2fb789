// What the tests of this folder share: temporary folders, event files, tiny data sets.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "brisk/ops/elementwise.h"
#include "brisk/ops/linear.h"
#include "brisk/trainer.h"
#include "support/error_text.h"

namespace brisk {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "brisk-train-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Parses every line; a line that does not parse throws.
inline std::vector<nlohmann::json> read_events(const std::string& path) {
  std::vector<nlohmann::json> out;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) out.push_back(nlohmann::json::parse(line));
  return out;
}

/// Input 1 and target 1, 2, ... n, one number each.
inline InMemoryDataset counting(int64_t n) {
  std::vector<float> x(static_cast<size_t>(n), 1), y(static_cast<size_t>(n));
  std::iota(y.begin(), y.end(), 1.0f);
  InMemoryDataset out;
  out.add("input", Tensor(std::move(x), {n, 1}));
  out.add("target", Tensor(std::move(y), {n, 1}));
  out.set_name("counting");
  return out;
}

/// One weight, w0 = 0: the output is w times the input.
inline Model weight_model() {
  Model model([](Var x) { return linear(x, 1, {.bias = false}); }, {1});
  model.set_parameter("fc1.weight", Tensor(std::vector<float>{0}, {1, 1}));
  return model;
}
inline double weight(const Model& model) { return model.parameter("fc1.weight").data<float>()[0]; }

inline Mean half_square(Var out, Var target) {
  Var d = out - target;
  return 0.5 * sample_mean(d * d);
}

/// A fit() of this length that prints nothing.
inline FitOptions quiet(Duration duration) {
  FitOptions options;
  options.duration = duration;
  options.progress = false;
  return options;
}

using test::error_text;

}  // namespace brisk
