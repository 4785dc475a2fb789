// What the measurements of brisk bench share.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>

#include "cli/models.h"

namespace brisk::cli {

struct BenchOptions {
  std::optional<int64_t> batch;  ///< 64, of predictions 1
  int callers = 1;               ///< of predictions
  std::string device = "cpu";
  bool json = false;
  ModelChoice model;
  std::string precision = "f32";
  bool predict = false;
  double seconds = 5;
  std::optional<int> threads;  ///< 0, of predictions 1
};

inline double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Normal inputs and uniform labels, the same at every start.
struct Samples {
  Samples(const NamedModel& model, int64_t batch) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    Shape shape{batch};
    for (const int64_t size : model.input) shape.append(size);
    input = Tensor(shape);
    float* const x = input.data<float>();
    for (int64_t i = 0; i < input.count(); ++i) x[i] = normal(random);
    target = Tensor(Shape{batch}, DType::i64);
    int64_t* const y = target.data<int64_t>();
    for (int64_t i = 0; i < batch; ++i) y[i] = static_cast<int64_t>(random() % static_cast<uint64_t>(model.classes));
  }
  Tensor input;
  Tensor target;
};

/// Calls of a Predictor from several threads: latencies and throughput.
nlohmann::ordered_json bench_predictions(const BenchOptions& options);

}  // namespace brisk::cli
