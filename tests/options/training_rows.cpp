// Numbers of optimizers, schedules, steps, the training loop and predictors.
#include "options/table.h"

namespace brisk::test {
namespace {

Model small_model() {
  return {[](Var x) { return linear(x, 1); }, {1}};
}

InMemoryDataset four_samples() {
  InMemoryDataset out;
  out.add("input", Tensor(Shape{4, 1}));
  out.add("target", Tensor(Shape{4, 1}));
  return out;
}

Optimizer slow() { return sgd({.learning_rate = 1e-3}); }

void make_step(const StepOptions& options) {
  Model model = small_model();
  Step step(model, mse(), slow(), options);
}

void fit(const std::function<void(FitOptions&)>& set) {
  Model model = small_model();
  Trainer trainer(model, mse(), slow(), {.batch = 4, .threads = 1});
  const InMemoryDataset data = four_samples();
  FitOptions options{.duration = 1_updates, .progress = false};
  set(options);
  trainer.fit(data, data, options);
}

std::vector<Row> optimizers() {
  const auto in_group = [](ParameterGroup group) {
    group.match = "*";
    sgd({.groups = {group}, .learning_rate = 0.1});
  };
  return {
      real("ParameterGroup.learning_rate_scale", kNotNegativeF32,
           [=](double v) { in_group({.learning_rate_scale = v}); }),
      real("ParameterGroup.weight_decay", kNotNegativeF32, [=](double v) { in_group({.weight_decay = v}); }),
      real("SgdOptions.dampening", kShare, [](double v) { sgd({.dampening = v, .learning_rate = 0.1}); }),
      real("SgdOptions.learning_rate", kNotNegativeF32, [](double v) { sgd({.learning_rate = v}); }),
      real("SgdOptions.momentum", kShareBelowOne, [](double v) { sgd({.learning_rate = 0.1, .momentum = v}); }),
      real("SgdOptions.weight_decay", kNotNegativeF32,
           [](double v) { sgd({.learning_rate = 0.1, .weight_decay = v}); }),
      real("AdamOptions.betas", kShareBelowOne,
           [](double v) {
             adam({.betas = {0.9, v}});
           }),
      real("AdamOptions.epsilon", kPositiveF32, [](double v) { adam({.epsilon = v}); }),
      real("AdamOptions.learning_rate", kNotNegativeF32, [](double v) { adam({.learning_rate = v}); }),
      real("AdamOptions.weight_decay", kNotNegativeF32, [](double v) { adam({.weight_decay = v}); }),
      real("AdamWOptions.betas", kShareBelowOne,
           [](double v) {
             adamw({.betas = {v, 0.999}});
           }),
      real("AdamWOptions.epsilon", kPositiveF32, [](double v) { adamw({.epsilon = v}); }),
      real("AdamWOptions.learning_rate", kNotNegativeF32, [](double v) { adamw({.learning_rate = v}); }),
      real("AdamWOptions.weight_decay", kNotNegativeF32, [](double v) { adamw({.weight_decay = v}); }),
  };
}

std::vector<Row> schedules() {
  const auto updates = [](double count) { return Duration(count, Duration::Unit::updates); };
  const double longest = 9007199254740992.0;  // 2^53
  return {
      real("constant.value", kNotNegativeF32, [](double v) { constant(v); }),
      real("cosine.peak", kNotNegativeF32, [](double v) { cosine(v); }),
      real("step_decay.peak", kNotNegativeF32, [](double v) { step_decay(v, {.every = 1_epochs}); }),
      real("CosineOptions.end", kNotNegativeF32, [](double v) { cosine(1, {.end = v}); }),
      real("CosineOptions.over", {.low = 0, .high = longest}, [=](double v) { cosine(1, {.over = updates(v)}); }),
      real("StepDecayOptions.every", {.low = 0, .high = longest, .low_open = true},
           [=](double v) { step_decay(1, {.every = updates(v)}); }, {1, longest}),
      real("StepDecayOptions.factor", {.low = 0, .high = 1, .low_open = true},
           [](double v) { step_decay(1, {.every = 1_epochs, .factor = v}); }),
  };
}

std::vector<Row> steps() {
  constexpr int64_t kMost = int64_t{1} << 31;
  const auto clipped = [](double norm) { make_step({.clip_norm = norm}); };
  Row clip_norm = real("StepOptions.clip_norm", kNotNegativeF32, clipped, {0, kSmallestF32, kLargestF32});
  clip_norm.outside.push_back({"1e-300", [=] { clipped(1e-300); }});  // as an f32 it would be 0: off
  const auto scaled = [](LossScale scale) { make_step({.loss_scale = scale}); };
  return {
      real("StepOptions.loss_scale.backoff", kBetweenZeroAndOne, [=](double v) { scaled({.backoff = v}); }),
      real("StepOptions.loss_scale.growth", {.low = 1, .high = kLargestF32}, [=](double v) { scaled({.growth = v}); }),
      whole("StepOptions.loss_scale.growth_interval", 1, INT64_MAX, [=](int64_t v) { scaled({.growth_interval = v}); }),
      real("StepOptions.loss_scale.initial", {.low = 1, .high = 16777216}, [=](double v) { scaled({.initial = v}); }),
      real("StepOptions.loss_scale.maximum", {.low = kSmallestF32, .high = kLargestF32},
           [=](double v) { scaled({.initial = v, .maximum = v, .minimum = v}); }),
      whole("StepOptions.loss_scale.maximum_skips", 1, INT64_MAX, [=](int64_t v) { scaled({.maximum_skips = v}); }),
      real("StepOptions.loss_scale.minimum", {.low = kSmallestF32, .high = 65536},
           [=](double v) { scaled({.maximum = 65536, .minimum = v}); }),
      whole("StepOptions.accumulate", 1, kMost, [](int64_t v) { make_step({.accumulate = v, .batch = 1}); }),
      whole("StepOptions.batch", 1, kMost, [](int64_t v) { make_step({.batch = v}); }),
      clip_norm,
      whole("StepOptions.global_batch", 1, kMost, [](int64_t v) { make_step({.accumulate = 1, .global_batch = v}); }),
      whole<int>("StepOptions.threads", 0, 4096, [](int v) { make_step({.threads = v}); }, {0, 2}),
      whole("LargestBatchOptions.budget_bytes", 0, INT64_MAX,
            [](int64_t v) {
              Model model = small_model();
              Step(model, mse(), slow()).largest_batch({.budget_bytes = v});
            }),
      whole("Step::plan.batch", 0, kMost,
            [](int64_t v) {
              Model model = small_model();
              Step(model, mse(), slow()).plan(v);
            },
            {0, 3}),
      real("UpdateCallbackOptions.every", {.low = 0, .low_open = true},
           [](double v) {
             Model model = small_model();
             Trainer(model, mse(), slow())
                 .on_update([](const UpdateReport&, Control&) {}, {.every = Duration(v, Duration::Unit::updates)});
           }),
      whole("PredictorOptions.batches", 1, int64_t{1} << 31,
            [](int64_t v) { Predictor(small_model(), {.batches = {v}}); }, {1, 9}),
      whole<int>("PredictorOptions.concurrency", 1, 4096, [](int v) { Predictor(small_model(), {.concurrency = v}); },
                 {1, 2}),
      whole<int>("PredictorOptions.threads", 0, 4096, [](int v) { Predictor(small_model(), {.threads = v}); }, {0, 2}),
  };
}

std::vector<Row> loops() {
  const auto lasting = [](Duration FitOptions::*field, Duration::Unit unit) {
    return [=](double v) { fit([&](FitOptions& o) { o.*field = Duration(v, unit); }); };
  };
  const auto stop = [](const std::function<void(EarlyStop&)>& set) {
    fit([&](FitOptions& o) {
      o.early_stop = {.monitor = lowest("loss"), .patience = 1};
      set(o.early_stop);
    });
  };
  using Unit = Duration::Unit;
  const Range length{.low = 0, .low_open = true};
  // No folder is there: what is accepted fails at the file.
  const auto picture = [](PictureOptions options) {
    try {
      loss_picture("no such folder", options);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::file) throw;
    }
  };
  return {
      real("FitOptions.duration", length, lasting(&FitOptions::duration, Unit::updates), {1}),
      real("FitOptions.evaluate_every", length, lasting(&FitOptions::evaluate_every, Unit::epochs)),
      real("FitOptions.log_every", length, lasting(&FitOptions::log_every, Unit::updates)),
      real("FitOptions.time_limit", length, lasting(&FitOptions::time_limit, Unit::seconds), {1e-3, 1e15}),
      whole<int>("FitOptions.prefetch", 0, 1 << 16, [](int v) { fit([&](FitOptions& o) { o.prefetch = v; }); }, {0, 3}),
      whole("FitOptions.workers", 0, 1024, [](int64_t v) { fit([&](FitOptions& o) { o.workers = v; }); }, {0, 2}),
      real("EarlyStop.min_delta", {.low = 0}, [=](double v) { stop([&](EarlyStop& o) { o.min_delta = v; }); }),
      whole<int>("EarlyStop.patience", 1, INT32_MAX, [=](int v) { stop([&](EarlyStop& o) { o.patience = v; }); }),
      real("EarlyStop.target", {}, [=](double v) { stop([&](EarlyStop& o) { o.target = v; }); }),
      whole<int>("EarlyStop.warmup", 0, INT32_MAX, [=](int v) { stop([&](EarlyStop& o) { o.warmup = v; }); }),
      whole<int>("PictureOptions.columns", 20, 10000, [=](int v) { picture({.columns = v}); }),
      whole<int>("PictureOptions.rows", 6, 10000, [=](int v) { picture({.rows = v}); }),
  };
}

}  // namespace

std::vector<Row> training_rows() {
  std::vector<Row> all;
  for (const auto& rows : {optimizers(), schedules(), steps(), loops()})
    all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

}  // namespace brisk::test
