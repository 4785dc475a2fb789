// Speed of each operation on each of its implementations, at the sizes of LeNet, of ResNet-18 on 32 x 32 images and of
// EfficientNet-B0 on 224 x 224 ones:
// FLOP/s by the op table's count, bytes/s by the sizes of the operands. --brisk_threads=N takes N threads (default 1).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "backend/cpu/isa.h"
#include "backend/cpu/lowering.h"
#include "core/pool.h"
#include "graph/op_table.h"

namespace brisk {
namespace {

namespace cpu = backend::cpu;
using graph::Attributes;
using graph::Graph;
using graph::Place;
using graph::ValueId;
using graph::ValueType;

struct Input {
  ValueType type;
  Place place = Place::activation;
  float value = 0.5f;
};

struct Row {
  std::string name;
  std::string op;
  Attributes attributes;
  std::vector<Input> inputs;
  std::vector<int64_t> batches;
};

Input batch(Shape shape, DType dtype = DType::f32) { return {{dtype, 1, shape}}; }
Input weight(Shape shape, Place place = Place::activation) { return {{DType::f32, 0, shape}, place}; }

struct Convolution {
  std::string name;
  int64_t in, size, out, kernel, stride, padding;
  std::vector<int64_t> batches;
  int64_t groups = 1;
};

void add_convolution(std::vector<Row>& rows, const Convolution& c) {
  using Pair = std::vector<int64_t>;
  const int64_t out = (c.size + 2 * c.padding - c.kernel) / c.stride + 1;
  const Input x = batch({c.in, c.size, c.size}), y = batch({c.out, out, out});
  const Input w = weight({c.out, c.kernel, c.kernel, c.in / c.groups});
  const Attributes geometry = {{"stride", Pair{c.stride, c.stride}},
                               {"padding", Pair{c.padding, c.padding}},
                               {"dilation", Pair{1, 1}},
                               {"groups", c.groups}};
  Attributes forward = geometry, input = geometry, kernel = geometry;
  forward.set("activation", std::string("relu"));
  input.set("input", Pair{c.in, c.size, c.size});
  kernel.set("kernel", Pair{c.kernel, c.kernel});
  rows.push_back({c.name, "conv2d", forward, {x, w, weight({c.out})}, c.batches});
  rows.push_back({c.name, "conv2d_input_gradient", input, {y, w}, c.batches});
  rows.push_back({c.name, "conv2d_weight_gradient", kernel, {x, y}, c.batches});
}

void add_linear(std::vector<Row>& rows, const std::string& name, int64_t in, int64_t out,
                std::vector<int64_t> batches) {
  const Input w = weight({out, in});
  rows.push_back({name, "linear", {{"activation", std::string("relu")}}, {batch({in}), w, weight({out})}, batches});
  rows.push_back({name, "linear_input_gradient", {}, {batch({out}), w}, batches});
  rows.push_back({name, "linear_weight_gradient", {}, {batch({in}), batch({out})}, batches});
}

void add_pooling(std::vector<Row>& rows, const std::string& name, int64_t channels, int64_t size,
                 std::vector<int64_t> batches) {
  const std::vector<int64_t> two = {2, 2}, none = {0, 0};
  const Attributes forward = {{"kernel", two}, {"stride", two}, {"padding", none}};
  Attributes backward = forward;
  backward.set("input", std::vector<int64_t>{channels, size, size});
  const Shape out = {channels, size / 2, size / 2};
  rows.push_back({name, "max_pool2d", forward, {batch({channels, size, size})}, batches});
  rows.push_back({name, "max_pool2d_gradient", backward, {batch(out), batch(out, DType::i32)}, batches});
}

void add_norm(std::vector<Row>& rows, const std::string& name, int64_t channels, int64_t size,
              std::vector<int64_t> batches) {
  const Input x = batch({channels, size, size}), c = weight({channels});
  const Input mean = weight({channels}, Place::buffer);
  rows.push_back({name,
                  "batch_norm",
                  {{"activation", std::string("relu")}, {"epsilon", 1e-5}, {"momentum", 0.1}},
                  {x, c, c, mean, mean, x},
                  batches});
  rows.push_back({name, "batch_norm_gradient", {{"activation", std::string("none")}}, {x, x, c, c, c}, batches});
  rows.push_back(
      {name + "_silu", "batch_norm_gradient", {{"activation", std::string("silu")}}, {x, x, c, c, c, c}, batches});
  rows.push_back({name, "relu", {}, {x}, batches});
  rows.push_back({name, "relu_gradient", {}, {x, x}, batches});
  rows.push_back({name, "add", {}, {x, x}, batches});
  rows.push_back({name, "channel_sum", {}, {x}, batches});
  rows.push_back({name, "reduce_mean", {{"axes", std::vector<int64_t>{1, 2}}, {"keep", false}}, {x}, batches});
}

/// What networks on tokens and generators do beside their products.
void add_tokens(std::vector<Row>& rows, const std::string& name, int64_t tokens, int64_t features,
                std::vector<int64_t> batches) {
  const Input x = batch({tokens, features}), f = weight({features}), statistics = batch({tokens});
  const Input words = batch({tokens}, DType::i64);
  const std::vector<int64_t> shape = {tokens, features};
  const Attributes stream = {{"shape", shape}, {"stream", int64_t{7}}};
  const auto drawn = [&](const char* first, const char* second) {
    Attributes attributes = stream;
    attributes.set(first, 1.0);
    attributes.set(second, 0.0);
    return attributes;
  };
  rows.push_back({name, "layer_norm", {{"dims", int64_t{1}}, {"epsilon", 1e-5}}, {x, f, f}, batches});
  rows.push_back({name, "layer_norm_gradient", {{"dims", int64_t{1}}}, {x, x, statistics, statistics, f}, batches});
  rows.push_back({name, "permute", {{"axes", std::vector<int64_t>{1, 0}}}, {x}, batches});
  rows.push_back({name, "embedding", {}, {weight({1000, features}), words}, batches});
  rows.push_back({name, "embedding_gradient", {{"count", int64_t{1000}}}, {x, words}, batches});
  rows.push_back({name, "random_normal", drawn("deviation", "mean"), {}, batches});
  rows.push_back({name, "random_uniform", drawn("high", "low"), {}, batches});
}

void add_loss(std::vector<Row>& rows, const std::string& name, int64_t classes, std::vector<int64_t> batches) {
  const Attributes options = {
      {"class_weights", std::vector<double>{}}, {"ignore_index", int64_t{-100}}, {"label_smoothing", 0.0}};
  const Input labels = batch({}, DType::i64);
  rows.push_back({name, "softmax_cross_entropy", options, {batch({classes}), labels}, batches});
  rows.push_back({name, "softmax_cross_entropy_gradient", options, {batch({}), labels, batch({classes})}, batches});
}

void add_walks(std::vector<Row>& rows, const std::string& name, Shape shape) {
  const auto inputs = [&](int scalars, std::vector<Place> memories) {
    std::vector<Input> made(static_cast<size_t>(scalars), {{DType::f32, 0, {}}, Place::scalar});
    made.push_back({{DType::f32, 0, {2}}, Place::activation, 0});
    for (const Place place : memories) made.push_back({{DType::f32, 0, shape}, place, 1e-3f});
    return made;
  };
  const std::vector<double> one = {1};
  rows.push_back(
      {name,
       "sgd_walk",
       {{"dampening", 0.0}, {"momentum", 0.9}, {"nesterov", false}, {"rate_scale", one}, {"weight_decay", one}},
       inputs(3, {Place::parameter, Place::gradient, Place::moment1}),
       {1}});
  rows.push_back({name,
                  "adam_walk",
                  {{"beta1", 0.9},
                   {"beta2", 0.999},
                   {"decoupled", true},
                   {"epsilon", 1e-8},
                   {"rate_scale", one},
                   {"weight_decay", one}},
                  inputs(4, {Place::parameter, Place::gradient, Place::moment1, Place::moment2}),
                  {1}});
  rows.push_back(
      {name, "gradient_stats", {}, {{{DType::f32, 0, {}}, Place::scalar}, weight(shape, Place::gradient)}, {1}});
}

std::vector<Row> table() {
  const std::vector<int64_t> lenet = {4, 64, 512}, resnet = {16, 128}, mobile = {32};
  std::vector<Row> rows;
  add_convolution(rows, {"lenet1", 1, 28, 20, 5, 1, 0, lenet});
  add_convolution(rows, {"lenet2", 20, 12, 50, 5, 1, 0, lenet});
  add_convolution(rows, {"resnet_64_at_32", 64, 32, 64, 3, 1, 1, resnet});
  add_convolution(rows, {"resnet_128_at_16", 128, 16, 128, 3, 1, 1, resnet});
  add_convolution(rows, {"resnet_256_at_8", 256, 8, 256, 3, 1, 1, resnet});
  add_convolution(rows, {"resnet_512_at_4", 512, 4, 512, 3, 1, 1, resnet});
  add_convolution(rows, {"resnet_halving", 64, 32, 128, 3, 2, 1, resnet});
  add_convolution(rows, {"resnet_shortcut", 64, 32, 128, 1, 2, 0, resnet});
  add_convolution(rows, {"resnet_stem", 3, 224, 64, 7, 2, 3, {16}});
  for (const auto& [channels, size, kernel, stride] : std::vector<std::array<int64_t, 4>>{
           {32, 112, 3, 1}, {96, 112, 3, 2}, {144, 56, 5, 2}, {240, 28, 3, 2}, {672, 14, 5, 1}, {1152, 7, 5, 1}}) {
    const std::string name = "mobile_" + std::to_string(channels) + "_at_" + std::to_string(size);
    add_convolution(rows, {name, channels, size, channels, kernel, stride, kernel / 2, mobile, channels});
  }
  for (const auto& [in, out, size] : std::vector<std::array<int64_t, 3>>{{16, 96, 112},
                                                                         {24, 144, 56},
                                                                         {144, 24, 56},
                                                                         {80, 480, 14},
                                                                         {672, 112, 14},
                                                                         {192, 1152, 7},
                                                                         {320, 1280, 7}}) {
    const std::string name = "mobile_" + std::to_string(in) + "_to_" + std::to_string(out);
    add_convolution(rows, {name, in, size, out, 1, 1, 0, mobile});
  }
  add_convolution(rows, {"mobile_stem", 3, 224, 32, 3, 2, 1, mobile});
  add_norm(rows, "mobile_96_at_112", 96, 112, mobile);
  add_norm(rows, "mobile_672_at_14", 672, 14, mobile);
  add_linear(rows, "lenet_fc1", 800, 500, lenet);
  add_linear(rows, "lenet_fc2", 500, 10, lenet);
  add_pooling(rows, "lenet_pool1", 20, 24, lenet);
  add_pooling(rows, "lenet_pool2", 50, 8, lenet);
  add_norm(rows, "resnet_64_at_32", 64, 32, resnet);
  add_norm(rows, "resnet_512_at_4", 512, 4, resnet);
  add_loss(rows, "10_classes", 10, lenet);
  add_loss(rows, "1000_classes", 1000, lenet);
  add_tokens(rows, "64x256", 64, 256, lenet);
  add_walks(rows, "lenet_fc1", {500, 800});
  rows.push_back({"lenet", "load", {}, {{{DType::f32, 1, {1, 28, 28}}, Place::input}}, lenet});
  rows.push_back({"lenet_fc1", "dropout", {{"rate", 0.5}, {"stream", int64_t{7}}}, {batch({500})}, lenet});
  return rows;
}

/// Aligned, zeroed memory.
class Memory {
 public:
  explicit Memory(int64_t bytes)
      : bytes_(bytes),
        data_(static_cast<char*>(::operator new (static_cast<size_t>(bytes) + 64, std::align_val_t{64}))) {
    std::memset(data_.get(), 0, static_cast<size_t>(bytes));
  }
  char* data() const { return data_.get(); }
  void fill(float value) { std::fill_n(reinterpret_cast<float*>(data()), bytes_ / 4, value); }
  int64_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(char* data) const { ::operator delete (data, std::align_val_t{64}); }
  };
  int64_t bytes_;
  std::unique_ptr<char, Free> data_;
};

/// One node, lowered and bound.
class Bound {
 public:
  Bound(const Row& row, int64_t samples, const cpu::Implementation& implementation, cpu::Isa isa) : samples_(samples) {
    std::vector<ValueId> ids;
    for (const Input& input : row.inputs) {
      ids.push_back(graph_.add_value(input.type, input.place, input.place == Place::activation ? -1 : 0));
    }
    graph_.add_node(row.op, ids, row.attributes, row.name);
    graph_.inputs.resize(1), graph_.parameters.resize(1), graph_.scalars.resize(1);
    const graph::Node& node = graph_.nodes[0];
    const cpu::Call call{graph_, node, samples, isa};
    if (implementation.declines) declined_ = implementation.declines(call);
    if (!declined_.empty()) return;
    implementation.lower(call, lowering_);
    for (size_t i = 0; i < row.inputs.size(); ++i) {
      in_.push_back(allocate(graph_.value(node.inputs[i]), isa).data());
      if (row.inputs[i].type.dtype == DType::f32) memories_.back().fill(row.inputs[i].value);
    }
    for (const ValueId id : node.outputs) out_.push_back(allocate(graph_.value(id), isa).data());
    workspace_ = std::make_unique<Memory>(lowering_.workspace_bytes);
  }

  const std::string& declined() const { return declined_; }
  double flops() const {
    return graph::flops(graph_, graph_.nodes[0]) * (batched() ? static_cast<double>(samples_) : 1);
  }
  double bytes() const {
    double total = 0;
    for (const Memory& memory : memories_) total += static_cast<double>(memory.bytes());
    return total;
  }

  void run(Pool& pool) {
    std::vector<Memory>& scratch = scratch_of(pool);
    for (const cpu::Phase& phase : lowering_.phases) {
      std::atomic<int64_t> next{0};
      pool.run([&](int worker) {
        const cpu::Operands operands{
            in_.data(), out_.data(), workspace_->data(), scratch[static_cast<size_t>(worker)].data(), &state_, 0};
        if (pool.threads() == 1) return phase.function(phase.parameters.get(), operands, 0, phase.units);
        for (int64_t unit; (unit = next.fetch_add(1)) < phase.units;) {
          phase.function(phase.parameters.get(), operands, unit, unit + 1);
        }
      });
    }
  }

 private:
  bool batched() const {
    return std::any_of(graph_.values.begin(), graph_.values.end(), [](const auto& v) { return v.type.batched(); });
  }

  Memory& allocate(graph::Value& value, cpu::Isa isa) {
    const int64_t lanes = cpu::lanes(isa);
    int64_t count = value.type.elements();
    if (value.type.batched() && value.place == Place::activation) {
      value.layout = graph::Layout::lanes;
      count *= (samples_ + lanes - 1) / lanes * lanes;
    } else if (value.type.batched()) {
      count *= samples_;
    }
    return memories_.emplace_back(count * size_of(value.type.dtype));
  }

  std::vector<Memory>& scratch_of(const Pool& pool) {
    while (scratch_.size() < static_cast<size_t>(pool.threads())) scratch_.emplace_back(lowering_.scratch_bytes);
    return scratch_;
  }

  int64_t samples_;
  Graph graph_;
  std::string declined_;
  cpu::Lowering lowering_;
  std::deque<Memory> memories_;
  std::vector<Memory> scratch_;
  std::unique_ptr<Memory> workspace_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
  cpu::Status status_;
  cpu::RunState state_{&status_, false, 0, 0};
};

void measure(benchmark::State& state, const Row& row, int64_t samples, const cpu::Implementation& implementation,
             cpu::Isa isa, Pool& pool) {
  Bound bound(row, samples, implementation, isa);
  if (!bound.declined().empty()) {
    state.SkipWithError(bound.declined().c_str());
    return;
  }
  for (auto _ : state) bound.run(pool);
  const auto rate = [&](double amount) {
    return benchmark::Counter(amount, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
  };
  state.counters["FLOP"] = rate(bound.flops());
  state.counters["B"] = rate(bound.bytes());
}

void register_all(Pool& pool) {
  static const std::vector<Row> rows = table();
  std::vector<cpu::Isa> sets = {cpu::Isa::avx2};
  if (cpu::widest_isa() != cpu::Isa::avx2) sets.push_back(cpu::widest_isa());
  for (const Row& row : rows) {
    for (const int64_t samples : row.batches) {
      for (const cpu::Implementation& implementation : cpu::implementations()) {
        if (implementation.op != row.op) continue;
        for (const cpu::Isa isa : sets) {
          const std::string name = row.op + "/" + row.name + "/" + std::to_string(samples) + "/" +
                                   std::string(implementation.name) + "/" + cpu::name(isa);
          benchmark::RegisterBenchmark(name.c_str(),
                                       [&row, samples, &implementation, isa, &pool](benchmark::State& state) {
                                         measure(state, row, samples, implementation, isa, pool);
                                       })
              ->UseRealTime()
              ->Unit(benchmark::kMicrosecond);
        }
      }
    }
  }
}

/// Takes --brisk_threads=N out of the arguments.
int threads_of(int& count, char** arguments) {
  constexpr const char* kFlag = "--brisk_threads=";
  int threads = 1, kept = 0;
  for (int i = 0; i < count; ++i) {
    if (std::strncmp(arguments[i], kFlag, std::strlen(kFlag)) == 0) {
      threads = std::atoi(arguments[i] + std::strlen(kFlag));
    } else {
      arguments[kept++] = arguments[i];
    }
  }
  count = kept;
  return threads;
}

}  // namespace
}  // namespace brisk

int main(int count, char** arguments) {
  brisk::Pool pool(brisk::threads_of(count, arguments));
  brisk::register_all(pool);
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
