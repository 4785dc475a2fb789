// Predictor: as many workplaces as calls may run at once, each with its arena and a program for each batch; callers
// take turns at them and read the newest snapshot of the model's values.
#include "brisk/predictor.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "backend/backend.h"
#include "core/arena.h"
#include "core/host_view.h"
#include "core/machine.h"
#include "core/text.h"
#include "core/turnstile.h"
#include "exec/compiled_plan.h"
#include "exec/devices.h"
#include "exec/faults.h"
#include "exec/fields.h"
#include "exec/latency.h"
#include "exec/snapshot.h"
#include "exec/structure.h"
#include "graph/op_table.h"

namespace brisk {
namespace {

constexpr int64_t kMostRows = int64_t{1} << 31;
constexpr int kMost = 4096;

[[noreturn]] void refuse(const char* field, int64_t value, const std::string& why) {
  throw Error(ErrorCode::option, cat("PredictorOptions.", field, " = ", value), why);
}

/// The largest first, each once, one row among them.
std::vector<int64_t> plan_batches(std::vector<int64_t> batches) {
  for (const int64_t rows : batches)
    if (rows < 1 || rows > kMostRows) refuse("batches", rows, cat("each must be from 1 to ", grouped(kMostRows)));
  batches.push_back(1);
  std::sort(batches.rbegin(), batches.rend());
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  return batches;
}

int64_t nanoseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count();
}

const std::shared_ptr<ModelState>& state_of(const Model& model) {
  if (!model.state()) throw Error(ErrorCode::state, "Model", "is empty: it was moved from");
  return model.state();
}

}  // namespace

class Predictor::Impl {
 public:
  Impl(const Model& model, const PredictorOptions& options);

  void run(const ConstView& input, const View& output);
  void run(const Feed& inputs, const Fetch& outputs);
  void publish(const Model& model);
  int64_t version() const { return snapshots_->publications() - 1; }
  PredictorStatistics statistics() const {
    return {latency_.count(), latency_.quantile_us(0.5), latency_.quantile_us(0.99)};
  }
  const std::vector<Field>& inputs() const { return inputs_; }
  const std::vector<Field>& outputs() const { return outputs_; }
  const std::vector<int64_t>& batches() const { return batches_; }
  int concurrency() const { return static_cast<int>(workplaces_.size()); }
  Plan plan(int64_t batch) const;
  int64_t bytes() const;

 private:
  /// What one call needs while it runs.
  struct Workplace {
    std::unique_ptr<backend::Runtime> runtime;
    Arena activations;
    std::vector<std::unique_ptr<backend::Program>> programs;  // by batches_
    std::vector<const void*> inputs;                          // of the call's next rows, by field
    std::vector<void*> outputs;
    alignas(64) std::atomic<bool> taken{false};
  };
  /// Waits for a workplace, and gives it back.
  class Turn {
   public:
    explicit Turn(Impl& impl);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    Workplace& place() const { return *place_; }

   private:
    Impl& impl_;
    Workplace* place_ = nullptr;
  };

  void make_plans(const PredictorOptions& options);
  void make_workplaces(const PredictorOptions& options);
  template <class Bind>
  void serve(const Bind& bind);
  void bind_input(Workplace& place, size_t field, const ConstView& view, int64_t& rows) const;
  void bind_output(Workplace& place, size_t field, const View& view, int64_t rows) const;
  void compute(Workplace& place, int64_t rows, float* const* parameters) const;
  [[noreturn]] void raise(const exec::CompiledPlan& plan, const backend::Fault& fault, int64_t first_row) const;

  std::shared_ptr<ModelState> model_;  // only its graph is read after construction
  std::vector<Field> inputs_, outputs_;
  std::vector<int64_t> output_rows_;                 // of one sample; 0: the output has no batch
  std::vector<int64_t> input_bytes_, output_bytes_;  // of one sample
  std::vector<int64_t> batches_;
  int threads_ = 1;
  const backend::Backend* backend_ = nullptr;
  std::vector<std::shared_ptr<const exec::CompiledPlan>> plans_;  // by batches_
  std::unique_ptr<exec::Snapshots> snapshots_;
  std::vector<std::unique_ptr<Workplace>> workplaces_;
  std::unique_ptr<Turnstile> turnstile_;
  exec::LatencyHistogram latency_;
};

// ---- construction

Predictor::Impl::Impl(const Model& model, const PredictorOptions& options) : model_(state_of(model)) {
  batches_ = plan_batches(options.batches);
  if (options.concurrency < 1 || options.concurrency > kMost)
    refuse("concurrency", options.concurrency, cat("must be from 1 to ", kMost, "; it counts calls that run at once"));
  if (options.threads < 0 || options.threads > kMost)
    refuse("threads", options.threads, cat("must be 0 (all allowed) to ", kMost));
  if (options.device.kind() != Device::Kind::cpu)
    throw Error(ErrorCode::option, cat("PredictorOptions.device = ", options.device.text()),
                "predictors compute on cpu() in this release, also those of a model that a GPU trains");
  backend_ = &exec::backend_of(options.device);
  threads_ = options.threads == 0 ? allowed_threads() : options.threads;
  inputs_ = model_->inputs;
  for (const Field& field : inputs_) input_bytes_.push_back(field.shape.count() * size_of(field.dtype));
  for (const graph::NamedValue& output : model_->graph.outputs) {
    const graph::ValueType& type = model_->graph.type(output.value);
    outputs_.push_back({output.name, type.shape, type.dtype});
    output_rows_.push_back(type.rows);
    output_bytes_.push_back(type.rows * type.shape.count() * size_of(type.dtype));
  }
  make_plans(options);
  make_workplaces(options);
  snapshots_->publish(model_);
}

void Predictor::Impl::make_plans(const PredictorOptions& options) {
  exec::PlanSource source;
  source.program = model_->graph;
  std::vector<passes::Fold> folds = passes::fold_batch_norm(source.program);
  source.request.phase = graph::Phase::predict;
  source.target = backend_->target();
  source.request.precision = exec::resolve(options.precision, *source.target);
  source.threads = threads_;
  for (const int64_t rows : batches_) {
    source.request.samples = rows;
    plans_.push_back(exec::compile_plan(source));
  }
  snapshots_ = std::make_unique<exec::Snapshots>(source.program, std::move(folds), plans_[0]->graph);
}

void Predictor::Impl::make_workplaces(const PredictorOptions& options) {
  int64_t activations = 0, scratch = 0;
  for (const auto& plan : plans_) {
    activations = std::max(activations, plan->bytes.activations);
    scratch = std::max(scratch, plan->bytes.scratch);
  }
  const int places = std::min(options.concurrency, std::max(1, allowed_threads() / threads_));
  const int64_t bytes = places * (activations + scratch) + snapshots_->bytes_each();
  if (bytes > available_memory_bytes()) throw_no_memory("Predictor", bytes);
  backend::Bindings bindings;
  bindings.parameters.assign(plans_[0]->graph.parameters.size(), nullptr);  // each run says where they are
  for (int i = 0; i < places; ++i) {
    auto place = std::make_unique<Workplace>();
    place->runtime = backend_->runtime(threads_);
    place->activations = Arena(activations, "activations of a predictor");
    bindings.arena = reinterpret_cast<char*>(place->activations.data());
    for (size_t k = 0; k < plans_.size(); ++k)
      place->programs.push_back(place->runtime->compile(plans_[k]->graph, batches_[k], bindings));
    place->inputs.assign(inputs_.size(), nullptr);
    place->outputs.assign(outputs_.size(), nullptr);
    workplaces_.push_back(std::move(place));
  }
  turnstile_ = std::make_unique<Turnstile>(places);
}

int64_t Predictor::Impl::bytes() const {
  int64_t bytes = snapshots_->bytes();
  for (const auto& place : workplaces_) bytes += place->activations.bytes() + place->runtime->scratch_bytes();
  return bytes;
}

Plan Predictor::Impl::plan(int64_t batch) const {
  const auto found = batch == 0 ? batches_.begin() : std::find(batches_.begin(), batches_.end(), batch);
  if (found != batches_.end()) return Plan(plans_[static_cast<size_t>(found - batches_.begin())]);
  std::string known;
  for (const int64_t rows : batches_) known += (known.empty() ? "" : ", ") + std::to_string(rows);
  throw Error(ErrorCode::option, cat("Predictor::plan.batch = ", batch), cat("there are plans of ", known, " rows"));
}

void Predictor::Impl::publish(const Model& model) {
  const std::shared_ptr<ModelState>& state = state_of(model);
  if (state != model_) exec::check_same_structure(*model_, *state);
  snapshots_->publish(state);
}

// ---- calls

Predictor::Impl::Turn::Turn(Impl& impl) : impl_(impl) {
  impl.turnstile_->enter();
  // No more callers are inside than there are places: one is free, if not at the first look.
  for (size_t i = 0; place_ == nullptr; i = (i + 1) % impl.workplaces_.size()) {
    Workplace& place = *impl.workplaces_[i];
    if (!place.taken.exchange(true, std::memory_order_acquire)) place_ = &place;
  }
}

Predictor::Impl::Turn::~Turn() {
  place_->taken.store(false, std::memory_order_release);
  impl_.turnstile_->leave();
}

/// bind(place) checks the call's views, sets the place's pointers, and returns the number of rows.
template <class Bind>
void Predictor::Impl::serve(const Bind& bind) {
  const auto start = std::chrono::steady_clock::now();
  {
    const Turn turn(*this);
    const int64_t rows = bind(turn.place());
    const exec::Snapshots::Reading values(*snapshots_);
    compute(turn.place(), rows, values.parameters());
  }
  latency_.add(nanoseconds_since(start));
}

void Predictor::Impl::run(const ConstView& input, const View& output) {
  if (inputs_.size() != 1 || outputs_.size() != 1) {
    const auto list = [](const std::vector<Field>& fields) {
      std::string names;
      for (const Field& field : fields) names += (names.empty() ? "" : ", ") + field.name;
      return names;
    };
    throw Error(ErrorCode::data, "Predictor::run",
                cat("(input, output) suits a model with one of each; this one has inputs ", list(inputs_),
                    " and outputs ", list(outputs_), ": run({{\"", inputs_[0].name, "\", view}, ...}, {{\"",
                    outputs_[0].name, "\", view}, ...})"));
  }
  serve([&](Workplace& place) {
    int64_t rows = -1;
    bind_input(place, 0, input, rows);
    bind_output(place, 0, output, rows);
    return rows;
  });
}

void Predictor::Impl::run(const Feed& inputs, const Fetch& outputs) {
  serve([&](Workplace& place) {
    std::fill(place.inputs.begin(), place.inputs.end(), nullptr);
    std::fill(place.outputs.begin(), place.outputs.end(), nullptr);
    int64_t rows = -1;
    size_t fed = 0;
    for (const auto& [name, view] : inputs.entries()) {
      const size_t field = exec::find_field(inputs_, name, "is no input of this predictor; it takes ");
      fed += place.inputs[field] == nullptr ? 1 : 0;
      bind_input(place, field, view, rows);
    }
    for (size_t i = 0; fed < inputs_.size() && i < inputs_.size(); ++i)
      if (place.inputs[i] == nullptr)
        throw Error(ErrorCode::data, cat("\"", inputs_[i].name, "\""),
                    "is missing from what the predictor is fed with");
    for (const auto& [name, view] : outputs.entries())
      bind_output(place, exec::find_field(outputs_, name, "is no output of this predictor; it makes "), view, rows);
    return rows;
  });
}

/// rows: of the call; -1: not known yet.
void Predictor::Impl::bind_input(Workplace& place, size_t field, const ConstView& view, int64_t& rows) const {
  exec::check_rows_of(inputs_[field], view);
  if (rows >= 0 && view.shape()[0] != rows)
    throw Error(ErrorCode::data, cat("\"", inputs_[field].name, "\""),
                cat("has ", view.shape()[0], " rows, the inputs before it have ", rows));
  rows = view.shape()[0];
  place.inputs[field] = view.raw();
}

void Predictor::Impl::bind_output(Workplace& place, size_t field, const View& view, int64_t rows) const {
  const Field& output = outputs_[field];
  Shape wanted;
  if (output_rows_[field] > 0) wanted.append(output_rows_[field] * rows);
  for (const int64_t size : output.shape) wanted.append(size);
  if (!(view.shape() == wanted) || view.dtype() != output.dtype)
    throw Error(ErrorCode::data, cat("\"", output.name, "\""),
                cat("the result is ", wanted, " ", brisk::name(output.dtype), ", the view to write it to is ",
                    view.shape(), " ", brisk::name(view.dtype())));
  if (view.raw() == nullptr || view.device() != cpu()) check_host(cat("\"", output.name, "\""), view);
  place.outputs[field] = view.raw();
}

void Predictor::Impl::compute(Workplace& place, int64_t rows, float* const* parameters) const {
  backend::RunArguments arguments;
  arguments.inputs = place.inputs.data();
  arguments.outputs = place.outputs.data();
  arguments.parameters = parameters;
  int64_t done = 0;
  for (size_t i = 0; i < batches_.size(); ++i) {
    for (; rows - done >= batches_[i]; done += batches_[i]) {
      arguments.first_sample = done;
      place.programs[i]->run(backend::StepList::micro_batch, arguments);
      backend::Report report;
      place.runtime->report(0, report);
      if (report.fault.kind != backend::Fault::Kind::none) raise(*plans_[i], report.fault, done);
      for (size_t k = 0; k < inputs_.size(); ++k)
        place.inputs[k] = static_cast<const char*>(place.inputs[k]) + batches_[i] * input_bytes_[k];
      for (size_t k = 0; k < outputs_.size(); ++k)
        if (place.outputs[k] != nullptr)
          place.outputs[k] = static_cast<char*>(place.outputs[k]) + batches_[i] * output_bytes_[k];
    }
  }
}

void Predictor::Impl::raise(const exec::CompiledPlan& plan, const backend::Fault& fault, int64_t first_row) const {
  const graph::Node& node = plan.graph.nodes[static_cast<size_t>(std::max(fault.node, 0))];
  if (fault.kind == backend::Fault::Kind::user_op) exec::raise_user_op(node, fault.exception);
  throw Error(ErrorCode::data, graph::label(node),
              cat("row ", first_row + fault.sample, " has ", fault.value, ", which is out of range"), node.where);
}

// ---- public face

Predictor::Predictor(const Model& model, PredictorOptions options) : impl_(std::make_unique<Impl>(model, options)) {}
Predictor::Predictor(Predictor&&) noexcept = default;
Predictor& Predictor::operator=(Predictor&&) noexcept = default;
Predictor::~Predictor() = default;
void Predictor::run(const ConstView& input, const View& output) const { impl_->run(input, output); }
void Predictor::run(const Feed& inputs, const Fetch& outputs) const { impl_->run(inputs, outputs); }
void Predictor::publish(const Model& model) { impl_->publish(model); }
int64_t Predictor::version() const { return impl_->version(); }
PredictorStatistics Predictor::statistics() const { return impl_->statistics(); }
std::vector<Field> Predictor::inputs() const { return impl_->inputs(); }
std::vector<Field> Predictor::outputs() const { return impl_->outputs(); }
std::vector<int64_t> Predictor::batches() const { return impl_->batches(); }
int Predictor::concurrency() const { return impl_->concurrency(); }
Plan Predictor::plan(int64_t batch) const { return impl_->plan(batch); }
int64_t Predictor::bytes() const { return impl_->bytes(); }

}  // namespace brisk
