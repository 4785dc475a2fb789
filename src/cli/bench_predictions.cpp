// brisk bench --predict: inference alone. Each caller calls again as soon as its last call has returned.
#include <algorithm>
#include <thread>
#include <vector>

#include "brisk/predictor.h"
#include "cli/allocation_counter.h"
#include "cli/bench.h"

namespace brisk::cli {
namespace {

constexpr int kWarmUpCalls = 10;
constexpr size_t kFewestCalls = 3;
constexpr int64_t kCountedCalls = 20;
constexpr size_t kMostCalls = 1 << 20;  ///< of a caller

/// Durations of the calls of all callers in microseconds, sorted.
std::vector<double> time_calls(const Predictor& predictor, const ConstView& input, const Shape& output,
                               const BenchOptions& options) {
  std::vector<std::vector<double>> times(static_cast<size_t>(options.callers));
  std::vector<std::thread> callers;
  for (std::vector<double>& mine : times) {
    callers.emplace_back([&] {
      Tensor result(output);
      mine.reserve(kMostCalls);
      for (int i = 0; i < kWarmUpCalls; ++i) predictor.run(input, result);
      const double start = now_ms();
      double begin = start;
      while ((begin - start < options.seconds * 1e3 || mine.size() < kFewestCalls) && mine.size() < kMostCalls) {
        predictor.run(input, result);
        const double end = now_ms();
        mine.push_back((end - begin) * 1e3);
        begin = end;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  std::vector<double> all;
  for (const std::vector<double>& mine : times) all.insert(all.end(), mine.begin(), mine.end());
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

nlohmann::ordered_json bench_predictions(const BenchOptions& options) {
  if (options.callers < 1 || options.callers > 1024) {
    throw Error(ErrorCode::option, "--callers " + std::to_string(options.callers), "must be from 1 to 1024");
  }
  const NamedModel named = find_model(options.model);
  const int64_t batch = options.batch.value_or(1);
  const Model model(named.function, named.input);
  const Predictor predictor(model, {.batches = {batch},
                                    .concurrency = options.callers,
                                    .device = options.device == "auto" ? cpu() : parse_device(options.device),
                                    .precision = parse_precision(options.precision),
                                    .threads = options.threads.value_or(1)});
  const Samples samples(named, batch);
  const Shape output = {batch, named.classes};
  const Plan plan = predictor.plan(batch);
  double flops = 0;
  for (const PlanStep& step : plan.steps()) flops += step.flops;

  const std::vector<double> times = time_calls(predictor, samples.input, output, options);
  double total_us = 0;
  for (const double time : times) total_us += time;
  const double calls_per_s = static_cast<double>(times.size()) * options.callers / total_us * 1e6;
  Tensor result(output);
  Allocations allocations;
  {
    const AllocationCounter counter;
    for (int64_t i = 0; i < kCountedCalls; ++i) predictor.run(samples.input, result);
    allocations = counter.counted();
  }
  const auto per_call = [](int64_t count) -> nlohmann::ordered_json {
    if (!AllocationCounter::works()) return nullptr;
    return static_cast<double>(count) / static_cast<double>(kCountedCalls);
  };
  nlohmann::ordered_json out;
  out["model"] = options.model.name;
  out["batch"] = batch;
  out["precision"] = name(plan.precision());
  out["threads"] = options.threads.value_or(1);
  out["callers"] = options.callers;
  out["concurrency"] = predictor.concurrency();
  out["calls"] = times.size();
  out["best_us"] = times.front();
  out["p50_us"] = times[times.size() / 2];
  out["p99_us"] = times[times.size() * 99 / 100];
  out["samples_per_s"] = calls_per_s * static_cast<double>(batch);
  out["gflop_per_s"] = calls_per_s * flops / 1e9;
  out["isa"] = plan.target();
  out["allocations_per_call"] = per_call(allocations.own);
  out["allocations_external"] = per_call(allocations.external);
  out["bytes"] = predictor.bytes();
  return out;
}

}  // namespace brisk::cli
