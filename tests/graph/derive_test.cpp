// Derivatives: each rule gives gradients of exactly its inputs' types, only those that are wanted, reads only what it
// says, and agrees with finite differences of the reference in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "graph/examples.h"
#include "oracle/oracle.h"

namespace brisk::graph {
namespace {

using test::b;
using test::build;
using test::Example;
using test::examples;
using test::p;

bool differentiable(const Graph& g, size_t input) {
  const Node& node = g.nodes[0];
  const Value& value = g.value(node.inputs[input]);
  return static_cast<int>(input) >= node.op->constant_inputs && value.type.dtype == DType::f32 &&
         value.place != Place::buffer;
}

struct Derived {
  Graph graph;
  ValueId seed = kNoValue;
  std::vector<ValueId> gradients;  ///< by input
};

/// Derives node 0 with a gradient of its first output that comes from outside; wanted: by input.
Derived derive(const Example& example, const std::vector<bool>& wanted) {
  Derived derived{build(example), kNoValue, {}};
  Graph& g = derived.graph;
  derived.seed = g.add_value(g.type(g.nodes[0].outputs[0]));
  std::vector<ValueId> output_gradients(g.nodes[0].outputs.size(), kNoValue);
  output_gradients[0] = derived.seed;
  Derivation d(g, 0, output_gradients);
  for (int i = 0; i < d.count(); ++i) {
    if (wanted[static_cast<size_t>(i)]) d.want(i);
  }
  g.nodes[0].op->derive(d);
  for (int i = 0; i < d.count(); ++i) derived.gradients.push_back(d.result(i));
  return derived;
}

std::vector<bool> all_wanted(const Example& example) {
  const Graph g = build(example);
  std::vector<bool> wanted;
  for (size_t i = 0; i < g.nodes[0].inputs.size(); ++i) wanted.push_back(differentiable(g, i));
  return wanted;
}

template <class F>
void for_each_derivative(F f) {
  int seen = 0;
  for (const Example& example : examples()) {
    if (!op(example.op).derive) continue;
    SCOPED_TRACE(example.op + " " + example.attributes.print());
    f(example);
    ++seen;
  }
  EXPECT_GT(seen, 60);
}

TEST(Derive, GradientsHaveTheTypesOfTheInputs) {
  for_each_derivative([](const Example& example) {
    const std::vector<bool> wanted = all_wanted(example);
    const Derived d = derive(example, wanted);
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!wanted[i]) continue;
      ASSERT_NE(d.gradients[i], kNoValue) << "input " << i;
      EXPECT_EQ(d.graph.type(d.gradients[i]), example.inputs[i].type)
          << "input " << i << ": " << d.graph.type(d.gradients[i]).text();
    }
  });
}

TEST(Derive, NodesAreBackwardNamedAndOnTheUsersLine) {
  for_each_derivative([](const Example& example) {
    const Derived d = derive(example, all_wanted(example));
    for (size_t i = 1; i < d.graph.nodes.size(); ++i) {
      const Node& node = d.graph.nodes[i];
      EXPECT_EQ(node.stage, Stage::backward);
      EXPECT_EQ(node.name, "example");
      EXPECT_EQ(node.where.text(), "net.cpp:7");
    }
  });
}

TEST(Derive, OnlyWhatIsWanted) {
  for_each_derivative([](const Example& example) {
    const std::vector<bool> all = all_wanted(example);
    const size_t nodes = derive(example, all).graph.nodes.size();
    for (size_t i = 0; i < all.size(); ++i) {
      if (!all[i]) continue;
      std::vector<bool> one(all.size(), false);
      one[i] = true;
      const Derived d = derive(example, one);
      EXPECT_NE(d.gradients[i], kNoValue);
      EXPECT_EQ(d.graph.type(d.gradients[i]), example.inputs[i].type);
      EXPECT_LE(d.graph.nodes.size(), nodes);
      for (size_t k = 0; k < all.size(); ++k) {
        if (k != i) {
          EXPECT_EQ(d.gradients[k], kNoValue) << "input " << k << ", which nobody wants";
        }
      }
    }
  });
}

TEST(Derive, ReadsWhatTheTableSays) {
  for_each_derivative([](const Example& example) {
    const Reads reads = op(example.op).backward_reads;
    const Derived d = derive(example, all_wanted(example));
    const Node& forward = d.graph.nodes[0];
    for (size_t i = 1; i < d.graph.nodes.size(); ++i) {
      for (const ValueId id : d.graph.nodes[i].inputs) {
        const bool input = std::find(forward.inputs.begin(), forward.inputs.end(), id) != forward.inputs.end();
        const bool output = d.graph.value(id).producer == 0;
        EXPECT_TRUE(!input || reads == Reads::inputs || reads == Reads::both) << "reads input %" << id;
        EXPECT_TRUE(!output || reads == Reads::outputs || reads == Reads::both) << "reads output %" << id;
      }
    }
  });
}

constexpr int64_t kSamples = 3;

oracle::Values random_values(const Derived& d) {
  oracle::Values given;
  std::mt19937 engine(7);
  std::uniform_real_distribution<double> uniform(0.2, 1.2);
  for (size_t i = 0; i < d.graph.values.size(); ++i) {
    const Value& value = d.graph.values[i];
    if (value.producer >= 0) continue;
    oracle::Array array = oracle::zeros(value.type, kSamples);
    int64_t next = 0;
    for (double& x : array.data) {
      x = value.type.dtype == DType::f32 ? uniform(engine) : static_cast<double>(next++ % 4);
      // Divisors, bases, arguments of logarithms and roots and variances stay positive; seeds and everything else have
      // both signs.
      const std::string_view name = d.graph.nodes[0].op->name;
      const bool positive = name == "div" || name == "log" || name == "pow" || name == "sqrt";
      const bool signs = static_cast<ValueId>(i) == d.seed || (!positive && value.place != Place::buffer);
      if (signs && engine() % 2 == 0 && value.type.dtype == DType::f32) x = -x;
    }
    given[static_cast<ValueId>(i)] = std::move(array);
  }
  return given;
}

double objective(const Derived& d, const oracle::Values& given) {
  Graph forward = d.graph;
  forward.nodes.resize(1);
  const oracle::Values values = oracle::evaluate(forward, kSamples, given);
  const oracle::Array &y = values.at(forward.nodes[0].outputs[0]), &seed = given.at(d.seed);
  double sum = 0;
  for (size_t i = 0; i < y.data.size(); ++i) sum += y.data[i] * seed.data[i];
  return sum;
}

TEST(Derive, AgreesWithFiniteDifferences) {
  for_each_derivative([](const Example& example) {
    if (example.inputs[0].type.elements() > 400) return;  // another example of that operation is small
    const std::vector<bool> wanted = all_wanted(example);
    const Derived d = derive(example, wanted);
    oracle::Values given = random_values(d);
    const oracle::Values values = oracle::evaluate(d.graph, kSamples, given);
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!wanted[i]) continue;
      const oracle::Array& gradient = values.at(d.gradients[i]);
      std::vector<double>& x = given[d.graph.nodes[0].inputs[i]].data;
      ASSERT_EQ(gradient.data.size(), x.size());
      for (size_t k = 0; k < x.size(); ++k) {
        const double kept = x[k], step = 1e-5;
        x[k] = kept + step;
        const double above = objective(d, given);
        x[k] = kept - step;
        const double below = objective(d, given);
        x[k] = kept;
        const double difference = (above - below) / (2 * step);
        EXPECT_NEAR(gradient.data[k], difference, 1e-7 + 1e-6 * std::fabs(difference))
            << "input " << i << "[" << k << "]";
      }
    }
  });
}

TEST(Derive, NothingWithoutAGradientOfTheFirstOutput) {
  for (const Example& example : examples()) {
    if (!op(example.op).derive || op(example.op).outputs < 2) continue;
    Graph g = build(example);
    Derivation d(g, 0, std::vector<ValueId>(g.nodes[0].outputs.size(), kNoValue));
    for (int i = 0; i < d.count(); ++i) d.want(i);
    g.nodes[0].op->derive(d);
    EXPECT_EQ(g.nodes.size(), 1u) << example.op;
  }
}

}  // namespace
}  // namespace brisk::graph
