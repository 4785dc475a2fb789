// All passes together: their order, a dump after each, and that nothing but the program decides what they make.
#include <algorithm>

#include "brisk/ops/conv.h"
#include "brisk/ops/elementwise.h"
#include "brisk/ops/linear.h"
#include "brisk/ops/norm.h"
#include "brisk/ops/shape.h"
#include "graph/model_state.h"
#include "passes/broken.h"

namespace brisk::passes::test {
namespace {

const std::vector<std::string> kOrder = {"trace",     "infer", "compose", "autodiff", "update", "precision",
                                         "recompute", "group", "select",  "schedule", "memory"};

TEST(Passes, OrderAndNames) {
  std::vector<std::string> known, seen;
  for (const Pass& pass : all()) known.emplace_back(pass.name);
  EXPECT_EQ(known, kOrder);
  compile(small_program().graph, request_for(Phase::train),
          [&](const char* name, const Graph&) { seen.emplace_back(name); });
  EXPECT_EQ(seen, kOrder);
}

TEST(Passes, ABrokenProgramIsRefusedByTheFirstVerifier) {
  Graph program = small_program().graph;
  node(program, "conv2d").inputs.resize(1);
  std::string last = "none";
  try {
    compile(program, request_for(Phase::train), [&](const char* name, const Graph&) { last = name; });
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.field(), "trace: arity") << error.what();
    EXPECT_EQ(last, "none") << "nothing later ran";
  }
}

/// Graphviz by the letter: quotes closed, braces and brackets balanced outside of them, each edge between known nodes.
void expect_dot(const std::string& text) {
  int braces = 0, brackets = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      braces += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
      brackets += text[i] == '[' ? 1 : text[i] == ']' ? -1 : 0;
      ASSERT_GE(std::min(braces, brackets), 0) << "at " << i;
    }
  }
  EXPECT_FALSE(quoted);
  EXPECT_EQ(braces, 0);
  EXPECT_EQ(brackets, 0);
  EXPECT_EQ(text.rfind("digraph ", 0), 0u);
  for (size_t edge = text.find(" -> "); edge != std::string::npos; edge = text.find(" -> ", edge + 1)) {
    const size_t begin = text.rfind(' ', edge - 1) + 1, end = text.find(' ', edge + 4);
    for (const std::string& name : {text.substr(begin, edge - begin), text.substr(edge + 4, end - edge - 4)})
      EXPECT_NE(text.find("  " + name + " ["), std::string::npos) << name << " is not declared";
  }
}

TEST(Passes, EachCanDumpItsResult) {
  for (const Phase phase : {Phase::train, Phase::evaluate, Phase::count}) {
    std::string previous;
    int changes = 0;
    compile(small_program().graph, request_for(phase), [&](const char* name, const Graph& graph) {
      const std::string text = graph::print(graph);
      EXPECT_EQ(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')),
                1 + graph.inputs.size() + graph.parameters.size() + graph.nodes.size() + graph.objective.size() +
                    graph.metrics.size() + graph.outputs.size())
          << name << "\n"
          << text;
      SCOPED_TRACE(name);
      expect_dot(graph::dot(graph));
      changes += text != previous;
      previous = text;
    });
    EXPECT_GE(changes, 4) << "a dump shows what its pass did";
  }
}

TEST(Passes, SameProgramSamePlan) {
  for (const Phase phase : {Phase::train, Phase::evaluate, Phase::count})
    for (const int64_t samples : {1, 4, 67}) {
      std::vector<std::string> first;
      compile(small_program().graph, request_for(phase, samples),
              [&](const char*, const Graph& graph) { first.push_back(graph::print(graph)); });
      size_t next = 0;
      compile(small_program().graph, request_for(phase, samples),
              [&](const char* name, const Graph& graph) { EXPECT_EQ(graph::print(graph), first[next++]) << name; });
    }
}

/// Two branches, whose operands are made in one order or the other, as compilers may.
Model branches(bool left_first) {
  return Model(
      [left_first](Var x) {
        Var left, right;
        const auto make_left = [&] { left = relu(batch_norm(conv2d(x, {.channels = 3, .kernel = 3}))); };
        const auto make_right = [&] { right = tanh(conv2d(x, {.channels = 3, .kernel = 3})); };
        if (left_first) {
          make_left();
          make_right();
        } else {
          make_right();
          make_left();
        }
        return linear(flatten(left + right), 4);
      },
      Shape{2, 6, 6});
}

TEST(Passes, TheOrderOfEvaluationLeavesNoTrace) {
  const Model forth = branches(true), back = branches(false);
  std::vector<std::string> names;
  for (const Parameter& parameter : forth.parameters()) names.push_back(parameter.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"conv1.weight", "conv1.bias", "bn1.weight", "bn1.bias", "bn1.running_mean",
                                      "bn1.running_var", "conv2.weight", "conv2.bias", "fc1.weight", "fc1.bias"}));
  EXPECT_EQ(graph::print(forth.state()->graph), graph::print(back.state()->graph));

  const auto plan = [](const Model& model) {
    const Program program = trace_program(Inputs{{"x", {2, 6, 6}}, {"label", {}, DType::i64}},
                                          [&](const Vars& in) { return cross_entropy(model(in["x"]), in["label"]); });
    return graph::print(compile(program.graph, request_for(Phase::train)));
  };
  EXPECT_EQ(plan(forth), plan(back));
}

}  // namespace
}  // namespace brisk::passes::test
