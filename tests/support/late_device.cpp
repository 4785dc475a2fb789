#include "support/late_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "core/text.h"
#include "graph/op_table.h"

namespace brisk::test {
namespace {

using namespace backend;

constexpr int64_t kPage = 4096;

/// To the nearest, ties to even.
uint16_t to_bf16(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
uint16_t to_f16(float value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const float size = std::fabs(value);
  if (!(size < 65520)) return sign | (std::isnan(value) ? 0x7e00 : 0x7c00);
  if (size == 0) return sign;
  const int exponent = std::max(std::ilogb(size), -14);
  const auto units = static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent)));  // 1024 is 1.0
  return static_cast<uint16_t>(sign + (exponent + 14) * 1024 + units);
}

/// What the device does and the CPU's kernels do not.
struct OwnWork {
  int32_t selection = std::numeric_limits<int32_t>::max();  ///< the node that selects scalars
  std::vector<int64_t> selected;                            ///< slots of scalars
  std::vector<size_t> kept;                                 ///< slots of the shadows that walks write
};

/// The graph for the CPU: it reads scalars as if they came from the host, and its walks write no shadows.
graph::Graph without(graph::Graph graph, OwnWork& own) {
  for (graph::Node& node : graph.nodes) {
    if (!node.attributes.has("shadowed")) continue;
    std::erase_if(node.outputs, [&](graph::ValueId id) {
      const graph::Value& value = graph.value(id);
      if (value.place != graph::Place::shadow) return false;
      own.kept.push_back(static_cast<size_t>(value.slot));
      return true;
    });
  }
  const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                  [](const graph::Node& node) { return node.op->name == "select_scalars"; });
  if (found == graph.nodes.end()) return graph;
  own.selection = static_cast<int32_t>(found - graph.nodes.begin());
  own.selected = found->attributes.integers("slots");
  graph.nodes.erase(found);
  for (graph::Value& value : graph.values) {
    if (value.producer == own.selection) value.producer = -1;
    if (value.producer > own.selection) --value.producer;
  }
  return graph;
}

/// The CPU as a device that runs ahead.
class LateTarget : public Target {
 public:
  explicit LateTarget(std::shared_ptr<const Target> cpu) : cpu_(std::move(cpu)) {}
  std::string name() const override { return "late " + cpu_->name(); }
  int lanes() const override { return cpu_->lanes(); }
  Choice choose(const graph::Graph& graph, const std::vector<int32_t>& nodes, int64_t samples) const override {
    if (graph.nodes[static_cast<size_t>(nodes[0])].op->name == "select_scalars") {
      Choice choice;
      choice.implementation = "late";
      return choice;
    }
    return cpu_->choose(graph, nodes, samples);
  }
  bool plain(const graph::Graph& graph, int64_t samples) const override { return cpu_->plain(graph, samples); }
  bool asynchronous() const override { return true; }
  bool in_place(const graph::Graph& graph, int32_t node, int input) const override {
    return graph.nodes[static_cast<size_t>(node)].op->name != "select_scalars" && cpu_->in_place(graph, node, input);
  }
  int64_t scratch_bytes(const graph::Graph& graph, int64_t samples) const override {
    OwnWork own;
    return cpu_->scratch_bytes(without(graph, own), samples);
  }
  int64_t library_bound_bytes() const override { return cpu_->library_bound_bytes(); }

 private:
  std::shared_ptr<const Target> cpu_;
};

/// Pages that nobody may touch but while they are open.
class Pages {
 public:
  explicit Pages(int64_t bytes) : limit_(bytes) {}
  ~Pages() {
    for (const auto& [address, bytes] : pages_) munmap(address, static_cast<size_t>(bytes));
  }
  void* take(int64_t bytes, const std::string& what) {
    const int64_t whole = (bytes + kPage - 1) / kPage * kPage;
    if (bytes > limit_ - held_) throw Error(ErrorCode::memory, what, cat("needs ", bytes, " bytes"));
    void* const address =
        mmap(nullptr, static_cast<size_t>(whole), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) throw Error(ErrorCode::memory, what, "mmap failed");
    pages_[address] = whole;
    sizes_[address] = bytes;
    held_ += bytes;
    return address;
  }
  void give(void* address) {
    munmap(address, static_cast<size_t>(pages_.at(address)));
    held_ -= sizes_.at(address);
    pages_.erase(address);
    sizes_.erase(address);
  }
  void protect(int protection) {
    for (const auto& [address, bytes] : pages_) mprotect(address, static_cast<size_t>(bytes), protection);
  }
  int64_t held() const { return held_; }
  int64_t available() const { return limit_ - held_; }

 private:
  int64_t limit_, held_ = 0;
  std::map<void*, int64_t> pages_, sizes_;
};

class Open {
 public:
  explicit Open(Pages& pages) : pages_(pages) { pages_.protect(PROT_READ | PROT_WRITE); }
  ~Open() { pages_.protect(PROT_NONE); }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;

 private:
  Pages& pages_;
};

/// What a run brought, in host memory.
struct Result {
  bool done = false;
  Fault fault;
  std::vector<double> totals;
  std::vector<float> stats;
  std::vector<float> scale;
  std::vector<int64_t> counters;
  std::vector<std::pair<void*, std::vector<char>>> outputs;  // to be copied there when it is reported
};

class LateProgram;

/// A run and all that changes from run to run, copied when it was queued.
struct Job {
  LateProgram* program = nullptr;
  StepList list = StepList::micro_batch;
  RunArguments arguments;
  std::vector<std::vector<char>> inputs;
  std::vector<float> scalars;
  std::vector<float> schedule;  // rows of updates [scheduled_before, arguments.scheduled)
  int64_t scheduled_before = 0;
  std::shared_ptr<Result> result;
};

/// A value's bytes for so many samples.
int64_t bytes_of(const graph::Graph& graph, graph::ValueId id, int64_t samples) {
  const graph::ValueType& type = graph.type(id);
  return type.elements() * (type.batched() ? samples : 1) * size_of(type.dtype);
}

}  // namespace

class LateDevice::Backend : public backend::Backend, public Memory {
 public:
  Backend(uint64_t seed, int64_t bytes)
      : cpu_(backend_for(cpu())), target_(std::make_shared<LateTarget>(cpu_.target())), pages_(bytes), random_(seed) {}

  std::shared_ptr<const Target> target() const override { return target_; }
  std::unique_ptr<Runtime> runtime(int threads) const override;
  Memory& memory() const override { return const_cast<Backend&>(*this); }

  void* allocate(int64_t bytes, const std::string& what) override {
    const std::lock_guard lock(mutex_);
    compute_all();
    return pages_.take(bytes, what);
  }
  void release(void* address) noexcept override {
    const std::lock_guard lock(mutex_);
    compute_all();
    pages_.give(address);
  }
  void write(void* to, const void* from, int64_t bytes) override { copy(to, from, bytes); }
  void read(void* to, const void* from, int64_t bytes) override { copy(to, from, bytes); }
  int64_t available_bytes() const override { return pages_.available(); }

  /// All runs of a device are computed in the order in which they were queued.
  void queue(Job job) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    ++runs_;
    const size_t wait = random_() % 3;
    while (jobs_.size() > wait) compute_next();
    late_runs_ += !jobs_.empty();
  }
  void wait_for(const Result& result) {
    const std::lock_guard lock(mutex_);
    while (!result.done) compute_next();
  }
  void wait() {
    const std::lock_guard lock(mutex_);
    compute_all();
  }
  const backend::Backend& cpu_backend() const { return cpu_; }
  Pages& pages() { return pages_; }
  int64_t held() const { return pages_.held(); }
  int64_t runs() const { return runs_; }
  int64_t late_runs() const { return late_runs_; }

 private:
  void copy(void* to, const void* from, int64_t bytes) {
    const std::lock_guard lock(mutex_);
    compute_all();
    const Open open(pages_);
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  void compute_all() {
    while (!jobs_.empty()) compute_next();
  }
  void compute_next();

  const backend::Backend& cpu_;
  const std::shared_ptr<const Target> target_;
  Pages pages_;
  std::mt19937_64 random_;
  std::mutex mutex_;
  std::deque<Job> jobs_;
  int64_t runs_ = 0, late_runs_ = 0;
};

namespace {

class LateRuntime : public Runtime {
 public:
  LateRuntime(LateDevice::Backend& backend, std::unique_ptr<Runtime> cpu) : backend_(backend), cpu_(std::move(cpu)) {}
  std::unique_ptr<Program> compile(const graph::Graph& graph, int64_t samples, const Bindings& bindings) override;
  bool report(int in_flight, Report& report) override;
  int threads() const override { return cpu_->threads(); }
  int64_t scratch_bytes() const override { return cpu_->scratch_bytes(); }
  int64_t entries() const override { return cpu_->entries(); }

  std::shared_ptr<Result> new_result() { return results_.emplace_back(std::make_shared<Result>()); }
  LateDevice::Backend& backend() { return backend_; }
  Runtime& cpu_runtime() { return *cpu_; }
  Fault status;  // of the window

 private:
  LateDevice::Backend& backend_;
  std::unique_ptr<Runtime> cpu_;
  std::deque<std::shared_ptr<Result>> results_;  // of runs that are not reported
  std::shared_ptr<Result> reported_;
};

class LateProgram : public Program {
 public:
  LateProgram(LateRuntime& runtime, const graph::Graph& graph, int64_t samples, const Bindings& bindings)
      : runtime_(runtime),
        graph_(without(graph, own_)),
        samples_(samples),
        given_(bindings),
        scalars_(graph.scalars.size()),
        schedule_(graph.scalars.size() * static_cast<size_t>(kScheduledUpdates)) {
    Bindings own = bindings;
    own.scalars = scalars_.data();
    own.schedule = schedule_.data();
    const Open open(runtime.backend().pages());
    cpu_ = runtime.cpu_runtime().compile(graph_, samples, own);
  }
  ~LateProgram() override { runtime_.backend().wait(); }

  void run(StepList list, const RunArguments& arguments) override {
    Job job{this, list, arguments, {}, {}, {}, scheduled_, runtime_.new_result()};
    for (size_t i = 0; arguments.inputs && i < graph_.inputs.size(); ++i) {
      const auto* from = static_cast<const char*>(arguments.inputs[i]);
      const int64_t bytes = from ? bytes_of(graph_, graph_.inputs[i].value, samples_) : 0;
      job.inputs.emplace_back(from, from + bytes);
    }
    for (size_t i = 0; arguments.outputs && i < graph_.outputs.size(); ++i)
      if (arguments.outputs[i])
        job.result->outputs.emplace_back(
            arguments.outputs[i],
            std::vector<char>(static_cast<size_t>(bytes_of(graph_, graph_.outputs[i].value, samples_))));
    job.scalars.assign(given_.scalars, given_.scalars + scalars_.size());
    for (int64_t update = scheduled_; given_.schedule && update < arguments.scheduled; ++update) {
      const float* row = given_.schedule + offset_of(update);
      job.schedule.insert(job.schedule.end(), row, row + scalars_.size());
    }
    scheduled_ = std::max(scheduled_, arguments.scheduled);
    runtime_.backend().queue(std::move(job));
  }

  void refresh_shadows() override {
    runtime_.backend().wait();
    const Open open(runtime_.backend().pages());
    for (const graph::Value& value : graph_.values)
      if (value.place == graph::Place::shadow) make_shadow(static_cast<size_t>(value.slot));
  }

  /// The device's memory is open. What went wrong in a window holds its update back.
  void compute(Job& job) {
    Result& result = *job.result;
    result.done = true;
    const bool trains = graph_.phase == graph::Phase::train;
    if (trains && job.list != StepList::update && !job.arguments.accumulate) runtime_.status = Fault();
    std::copy(job.scalars.begin(), job.scalars.end(), scalars_.begin());
    for (size_t i = 0; i * scalars_.size() < job.schedule.size(); ++i)
      std::copy_n(job.schedule.begin() + static_cast<std::ptrdiff_t>(i * scalars_.size()), scalars_.size(),
                  schedule_.begin() + offset_of(job.scheduled_before + static_cast<int64_t>(i)));
    result.totals.assign(2 * graph_.totals.size(), 0.0);
    if (trains && runtime_.status.kind != Fault::Kind::none) {
      result.fault = runtime_.status;
      return;
    }
    select_scalars(job);
    std::vector<const void*> inputs;
    for (const std::vector<char>& input : job.inputs) inputs.push_back(input.data());
    std::vector<void*> outputs;
    for (auto& [to, bytes] : result.outputs) outputs.push_back(bytes.data());
    job.arguments.inputs = inputs.data();
    job.arguments.outputs = outputs.empty() ? nullptr : outputs.data();
    cpu_->run(job.list, job.arguments);
    Report report;
    runtime_.cpu_runtime().report(0, report);
    if (job.list != StepList::update) result.totals.assign(report.totals, report.totals + result.totals.size());
    if (report.stats && job.list != StepList::micro_batch) result.stats.assign(report.stats, report.stats + 4);
    if (report.scale) result.scale.assign(report.scale, report.scale + 1);
    if (report.counters)
      result.counters.assign(report.counters, report.counters + static_cast<int64_t>(Counter::count));
    result.fault = report.fault;
    if (result.fault.kind != Fault::Kind::none && result.fault.node >= own_.selection) ++result.fault.node;
    if (job.list != StepList::micro_batch)
      for (const size_t slot : own_.kept) make_shadow(slot);
    if (trains) runtime_.status = result.fault;
  }

 private:
  void make_shadow(size_t slot) {
    const float* from = given_.parameters[slot];
    auto* to = static_cast<uint16_t*>(given_.shadows[slot]);
    const auto shadow = std::find_if(graph_.values.begin(), graph_.values.end(), [&](const graph::Value& value) {
      return value.place == graph::Place::shadow && value.slot == static_cast<int32_t>(slot);
    });
    const bool bf16 = shadow->type.dtype == DType::bf16;
    for (int64_t i = 0; i < shadow->type.elements(); ++i) to[i] = bf16 ? to_bf16(from[i]) : to_f16(from[i]);
  }
  /// The scalars of the update that the device has come to, from its own copy of the schedule.
  void select_scalars(const Job& job) {
    if (own_.selected.empty() || job.list == StepList::micro_batch) return;
    const int64_t update = given_.counters[static_cast<size_t>(Counter::updates)];
    if (update >= scheduled_) throw Error(ErrorCode::state, "LateDevice", cat("update ", update, " is not scheduled"));
    for (const int64_t slot : own_.selected)
      scalars_[static_cast<size_t>(slot)] = schedule_[static_cast<size_t>(offset_of(update) + slot)];
  }
  std::ptrdiff_t offset_of(int64_t update) const {
    return update % kScheduledUpdates * static_cast<std::ptrdiff_t>(scalars_.size());
  }
  LateRuntime& runtime_;
  OwnWork own_;
  const graph::Graph graph_;
  const int64_t samples_;
  const Bindings given_;
  std::vector<float> scalars_, schedule_;
  int64_t scheduled_ = 0;
  std::unique_ptr<Program> cpu_;
};

std::unique_ptr<Program> LateRuntime::compile(const graph::Graph& graph, int64_t samples, const Bindings& bindings) {
  backend_.wait();
  return std::make_unique<LateProgram>(*this, graph, samples, bindings);
}

bool LateRuntime::report(int in_flight, Report& report) {
  if (static_cast<int64_t>(results_.size()) <= in_flight) return false;
  backend_.wait_for(*results_.front());
  reported_ = std::move(results_.front());
  results_.pop_front();
  const Result& result = *reported_;
  for (const auto& [to, bytes] : result.outputs) std::memcpy(to, bytes.data(), bytes.size());
  report = Report();
  report.fault = result.fault;
  report.totals = result.totals.data();
  report.stats = result.stats.empty() ? nullptr : result.stats.data();
  report.scale = result.scale.empty() ? nullptr : result.scale.data();
  report.counters = result.counters.empty() ? nullptr : result.counters.data();
  return true;
}

}  // namespace

std::unique_ptr<Runtime> LateDevice::Backend::runtime(int threads) const {
  return std::make_unique<LateRuntime>(const_cast<Backend&>(*this), cpu_.runtime(threads));
}

void LateDevice::Backend::compute_next() {
  Job job = std::move(jobs_.front());
  jobs_.pop_front();
  const Open open(pages_);
  job.program->compute(job);
}

LateDevice::LateDevice(uint64_t seed, int64_t memory_bytes)
    : backend_(std::make_unique<Backend>(seed, memory_bytes)), stand_in_(gpu(0), *backend_) {}
LateDevice::~LateDevice() = default;
int64_t LateDevice::held_bytes() const { return backend_->held(); }
int64_t LateDevice::runs() const { return backend_->runs(); }
int64_t LateDevice::late_runs() const { return backend_->late_runs(); }

}  // namespace brisk::test
