// Groups: random expressions run as one kernel give the bits of their nodes run apart, also where memory is shared.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "backend/cpu/lower/lower.h"
#include "core/denormals.h"
#include "graph/op_table.h"
#include "support/random.h"
#include "support/run_node.h"

namespace brisk::test {
namespace {

using graph::Graph;
using graph::ValueId;

/// Memory of one value in the backend's layout, 64-byte aligned, with room to see writes behind it.
class Memory {
 public:
  static constexpr size_t kGuard = 16;
  explicit Memory(size_t count) : count_(count), bytes_(new (std::align_val_t{64}) float[count + kGuard]) {
    std::fill_n(bytes_.get(), count + kGuard, -77.0f);
  }
  float* data() { return bytes_.get(); }
  size_t count() const { return count_; }
  bool intact() const {
    return std::all_of(bytes_.get() + count_, bytes_.get() + count_ + kGuard, [](float x) { return x == -77.0f; });
  }

 private:
  struct Free {
    void operator()(float* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };
  size_t count_;
  std::unique_ptr<float[], Free> bytes_;
};

class Bench {
 public:
  Bench(const Graph& graph, int64_t samples, cpu::Isa isa) : graph_(graph), samples_(samples), isa_(isa) {
    const int64_t lanes = cpu::lanes(isa), blocks = (samples + lanes - 1) / lanes;
    for (const graph::Value& value : graph.values) {
      const int64_t spread = value.type.batched() ? blocks * lanes : 1;
      memory_.push_back(std::make_unique<Memory>(static_cast<size_t>(value.type.elements() * spread)));
    }
  }
  Memory& of(ValueId id) { return *memory_[static_cast<size_t>(id)]; }

  void run(const cpu::Lowering& lowering, const std::vector<ValueId>& inputs, const std::vector<float*>& outputs) {
    FlushDenormals flush;
    Memory workspace(static_cast<size_t>(lowering.workspace_bytes / 4)),
        scratch(static_cast<size_t>(lowering.scratch_bytes / 4));
    std::vector<const void*> in;
    for (const ValueId id : inputs) in.push_back(of(id).data());
    const std::vector<void*> out(outputs.begin(), outputs.end());
    cpu::Status status;
    const cpu::RunState state{&status, false, 3, 11};
    const cpu::Operands operands{
        in.data(), out.data(), reinterpret_cast<char*>(workspace.data()), reinterpret_cast<char*>(scratch.data()),
        &state,    0};
    for (const cpu::Phase& phase : lowering.phases) {
      for (int64_t unit = phase.units; unit-- > 0;) phase.function(phase.parameters.get(), operands, unit, unit + 1);
    }
    EXPECT_TRUE(scratch.intact() && workspace.intact());
  }

  void run_apart(int32_t index) {
    const graph::Node& node = graph_.nodes[static_cast<size_t>(index)];
    cpu::Lowering lowering;
    cpu::lower_elementwise({graph_, node, samples_, isa_}, lowering);
    run(lowering, node.inputs, {of(node.outputs[0]).data()});
  }

 private:
  const Graph& graph_;
  int64_t samples_;
  cpu::Isa isa_;
  std::vector<std::unique_ptr<Memory>> memory_;
};

/// A random expression over full operands, one channel vector and one scalar.
struct Expression {
  Graph graph;
  std::vector<int32_t> nodes;
  std::vector<ValueId> inputs;

  Expression(Random& random, graph::ValueType type, int length) {
    std::vector<ValueId> values;
    for (int i = 0; i < 3; ++i) values.push_back(graph.add_value(type));
    Shape channel;
    for (int i = 0; i < type.shape.rank(); ++i) channel.append(i == 0 ? type.shape[0] : 1);
    const std::vector<ValueId> small = {graph.add_value({DType::f32, 0, channel}),
                                        graph.add_value({DType::f32, 0, Shape{}})};
    inputs = {values[0], values[1], values[2], small[0], small[1]};
    const auto pick = [&] { return values[static_cast<size_t>(random.below(static_cast<int64_t>(values.size())))]; };
    for (int i = 0; i < length; ++i)
      values.push_back(add(random, type, pick(),
                           random.below(3) == 0 ? small[static_cast<size_t>(random.below(2))] : pick(), pick()));
    for (size_t i = 0; i < graph.nodes.size(); ++i) nodes.push_back(static_cast<int32_t>(i));
  }

 private:
  ValueId add(Random& random, const graph::ValueType& type, ValueId a, ValueId b, ValueId c) {
    static const char* const kBinary[] = {"add", "sub", "mul", "div", "minimum", "maximum"};
    static const char* const kUnary[] = {"relu", "tanh",      "sigmoid", "exp",      "log",  "identity",
                                         "gelu", "gelu_tanh", "silu",    "softplus", "sqrt", "abs"};
    static const char* const kGradient[] = {"relu_gradient", "tanh_gradient", "sigmoid_gradient", "silu_gradient"};
    static const char* const kThree[] = {"where", "minimum_gradient", "maximum_gradient"};
    switch (random.below(type.batched() ? 9 : 8)) {
      case 0:
        return graph.emit(kUnary[random.below(12)], {a});
      case 1:
        return graph.emit("scale", {a}, {{"factor", random.uniform(-2, 2)}});
      case 2:
        return graph.emit("add_scalar", {a}, {{"value", random.uniform(-2, 2)}});
      case 3:
        return graph.emit("huber", {a}, {{"delta", 0.7}});
      case 4:
        if (graph.type(b) == type) return graph.emit(kGradient[random.below(4)], {a, b});
        return graph.emit("add", {a, b});
      case 5:
        return graph.emit(kThree[random.below(3)], {a, b, c});
      case 6:
        return random.below(2) == 0 ? graph.emit("compare", {a, b}, {{"relation", std::string("less")}})
                                    : graph.emit("pow", {a}, {{"exponent", random.uniform(-1, 3)}});
      case 8:
        return graph.emit("dropout", {a}, {{"rate", 0.4}, {"stream", random.below(1000)}});
      default:
        return graph.emit(kBinary[random.below(6)], {a, b});
    }
  }
};

void fill(Random& random, Memory& memory) {
  for (size_t i = 0; i < memory.count(); ++i) memory.data()[i] = static_cast<float>(random.uniform(-3, 3));
}

bool same_bits(float* a, float* b, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (std::memcmp(a + i, b + i, sizeof(float)) != 0 && !(std::isnan(a[i]) && std::isnan(b[i]))) return false;
  }
  return true;
}

/// Runs one expression apart, grouped, and grouped with its last result in the memory of each full operand.
void expect_same(Random& random, const graph::ValueType& type, int64_t samples, cpu::Isa isa, int length) {
  Expression expression(random, type, length);
  const Graph& graph = expression.graph;
  Bench bench(graph, samples, isa);
  for (const ValueId id : expression.inputs) fill(random, bench.of(id));
  for (const int32_t index : expression.nodes) bench.run_apart(index);
  const ValueId last = graph.nodes.back().outputs[0];
  std::vector<ValueId> outputs = {last};
  if (graph.nodes.size() > 2) outputs.push_back(graph.nodes[graph.nodes.size() / 2].outputs[0]);

  cpu::Lowering lowering;
  cpu::lower_group(graph, expression.nodes, samples, isa, expression.inputs, outputs, lowering);
  ASSERT_EQ(lowering.phases.size(), 1u);
  std::vector<std::unique_ptr<Memory>> results;
  std::vector<float*> pointers;
  for (const ValueId id : outputs) {
    results.push_back(std::make_unique<Memory>(bench.of(id).count()));
    pointers.push_back(results.back()->data());
  }
  bench.run(lowering, expression.inputs, pointers);
  for (size_t i = 0; i < outputs.size(); ++i) {
    ASSERT_TRUE(same_bits(pointers[i], bench.of(outputs[i]).data(), bench.of(outputs[i]).count()))
        << graph::print(graph);
    ASSERT_TRUE(results[i]->intact());
  }
  for (size_t shared = 0; shared < 3; ++shared) {
    Memory& memory = bench.of(expression.inputs[shared]);
    const std::vector<float> before(memory.data(), memory.data() + memory.count());
    for (size_t i = 0; i < outputs.size(); ++i) {
      std::vector<float*> places = pointers;
      places[i] = memory.data();
      bench.run(lowering, expression.inputs, places);
      for (size_t k = 0; k < outputs.size(); ++k) {
        ASSERT_TRUE(same_bits(places[k], bench.of(outputs[k]).data(), memory.count())) << graph::print(graph);
      }
      ASSERT_TRUE(memory.intact());
      std::copy(before.begin(), before.end(), memory.data());
    }
  }
}

class Groups : public testing::TestWithParam<cpu::Isa> {};

TEST_P(Groups, GiveTheBitsOfTheirNodes) {
  Random random(5);
  const graph::ValueType types[] = {{DType::f32, 1, Shape{3, 5, 7}},
                                    {DType::f32, 2, Shape{6}},
                                    {DType::f32, 1, Shape{40, 33}},
                                    {DType::f32, 0, Shape{3, 1001}},
                                    {DType::f32, 0, Shape{5}}};
  for (const graph::ValueType& type : types) {
    for (int round = 0; round < 12; ++round) expect_same(random, type, 1 + random.below(40), GetParam(), 1 + round);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Groups, testing::ValuesIn(instruction_sets()),
                         [](const auto& made) { return std::string(cpu::name(made.param)); });

}  // namespace
}  // namespace brisk::test
