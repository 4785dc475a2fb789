// brisk bench: the training step alone. SGD 0.01, momentum 0.9, weight decay 5e-4 on all parameters; inputs in memory;
// the loss is read once, at the end.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "brisk/brisk.h"
#include "cli/allocation_counter.h"
#include "cli/bench.h"
#include "cli/commands.h"
#include "cli/models.h"
#include "cli/process.h"

namespace brisk::cli {
namespace {

constexpr int64_t kBatch = 64;  ///< unless asked for another
constexpr int kWarmUpSteps = 3;
constexpr int64_t kCountedSteps = 50;  ///< at most: allocations are counted
constexpr double kCountedSeconds = 2;  ///< about what counting may take
constexpr size_t kFewestSteps = 3;

struct Result {
  Allocations allocations;
  double best_ms = 0;
  int64_t counted_steps = 0;
  double first_step_ms = 0;
  std::string isa;
  double loss = 0;
  double median_ms = 0;
  int64_t plan_bytes = 0;
  std::string precision;
  size_t steps = 0;
  int threads = 0;
};

void time_steps(Step& step, const ConstView& x, const ConstView& y, double seconds, Result& result) {
  std::vector<double> times;
  times.reserve(1 << 20);
  const double start = now_ms();
  double begin = start;
  while ((begin - start < seconds * 1e3 || times.size() < kFewestSteps) && times.size() < times.capacity()) {
    step.run(x, y);
    const double end = now_ms();
    times.push_back(end - begin);
    begin = end;
  }
  std::sort(times.begin(), times.end());
  result.median_ms = times[times.size() / 2];
  result.best_ms = times.front();
  result.steps = times.size();
}

Result measure(const BenchOptions& options) {
  const NamedModel named = find_model(options.model);
  const int64_t batch = options.batch.value_or(kBatch);
  Model model(named.function, named.input);
  const Optimizer optimizer =
      sgd({.groups = {{.match = "*", .weight_decay = 5e-4}}, .learning_rate = 0.01, .momentum = 0.9});
  Step step(model, cross_entropy(), optimizer,
            {.batch = batch,
             .device = parse_device(options.device),
             .precision = parse_precision(options.precision),
             .threads = options.threads.value_or(0)});
  const Samples samples(named, batch);
  const ConstView x = samples.input, y = samples.target;

  Result result;
  step.run(x, y);
  result.first_step_ms = process_age_ms();
  for (int i = 0; i < kWarmUpSteps; ++i) step.run(x, y);
  time_steps(step, x, y, options.seconds, result);
  const double affordable = kCountedSeconds * 1e3 / result.median_ms;
  result.counted_steps = std::clamp(static_cast<int64_t>(affordable), int64_t{1}, kCountedSteps);
  {
    const AllocationCounter counter;
    for (int64_t i = 0; i < result.counted_steps; ++i) step.run(x, y);
    result.allocations = counter.counted();
  }
  result.loss = step.read().loss;
  const Plan plan = step.plan();
  result.isa = plan.target();
  result.precision = name(plan.precision());
  result.plan_bytes = plan.bytes().total;
  result.threads = step.threads();
  return result;
}

nlohmann::ordered_json to_json(const BenchOptions& options, const Result& result) {
  nlohmann::ordered_json out;
  const auto per_step = [&result](int64_t count) -> nlohmann::ordered_json {
    if (!AllocationCounter::works()) return nullptr;
    return static_cast<double>(count) / static_cast<double>(result.counted_steps);
  };
  out["model"] = options.model.name;
  out["batch"] = options.batch.value_or(kBatch);
  out["precision"] = result.precision;
  out["threads"] = result.threads;
  out["steps"] = result.steps;
  out["median_ms"] = result.median_ms;
  out["best_ms"] = result.best_ms;
  out["samples_per_s"] = static_cast<double>(options.batch.value_or(kBatch)) / result.median_ms * 1e3;
  out["isa"] = result.isa;
  out["allocations_per_step"] = per_step(result.allocations.own);
  out["allocations_external"] = per_step(result.allocations.external);
  out["plan_bytes"] = result.plan_bytes;
  out["peak_bytes"] = peak_bytes();
  out["first_step_ms"] = result.first_step_ms;
  out["loss"] = std::isfinite(result.loss) ? nlohmann::ordered_json(result.loss) : nlohmann::ordered_json(nullptr);
  return out;
}

void run(const BenchOptions& options) {
  if (!(options.seconds >= 0 && std::isfinite(options.seconds))) {
    throw Error(ErrorCode::option, "--seconds", "must be a finite number of at least 0");
  }
  const nlohmann::ordered_json found =
      options.predict ? bench_predictions(options) : to_json(options, measure(options));
  if (options.json) {
    std::printf("%s\n", found.dump().c_str());
    return;
  }
  for (const auto& [name, value] : found.items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    std::printf("%-22s %s\n", name.c_str(), text.c_str());
  }
}

}  // namespace

void add_bench(CLI::App& app, Outcome&) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App* const command = app.add_subcommand(
      "bench",
      "Measures the training step of a model: SGD 0.01, momentum 0.9, weight decay 5e-4 on all parameters, inputs in "
      "memory, the loss read once at the end. first_step_ms: from the start of the process by the kernel's clock, at "
      "most "
      "10 ms too large. allocations_*: of all threads, a step; external: oneDNN's own. With --predict: inference, from "
      "several "
      "threads at once; gflop_per_s of all together.");
  add_model_options(*command, options->model, true);
  command->add_option("--batch", options->batch, "samples a step [64], rows a call of --predict [1]");
  command->add_option("--callers", options->callers, "threads that call at once, with --predict")
      ->capture_default_str();
  add_device_option(*command, options->device);
  command->add_option("--precision", options->precision, "f32, bf16, fp16 or automatic")->capture_default_str();
  command->add_flag("--predict", options->predict, "measure inference: latency and throughput of a Predictor");
  command->add_option("--seconds", options->seconds, "how long to measure")->capture_default_str();
  command->add_option("--threads", options->threads,
                      "of a step [0: all that this process may use], of a call of --predict [1]");
  command->add_flag("--json", options->json, "one JSON object on one line");
  command->callback([options] { run(*options); });
}

}  // namespace brisk::cli
