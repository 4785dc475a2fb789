// Small programs as passes see them, and the table form of deliberately broken graphs: each is a good graph after one
// mutation, and the rule by which the verifier of the pass must refuse it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "brisk/loss.h"
#include "brisk/model.h"
#include "brisk/optimizer.h"
#include "passes/common.h"

namespace brisk::passes::test {

using graph::Graph;
using graph::Node;
using graph::Phase;
using graph::Place;
using graph::Stage;
using graph::ValueId;
using Attributes = graph::Attributes;

/// A program with what it refers to. Two losses share a network: a "class" of cross-entropy, and half a "value" of mse.
struct Program {
  Graph graph;
  std::vector<std::shared_ptr<ModelState>> models;
};

/// Traces an objective (and a metric) over models, as a step does. Frozen parameters are not trainable.
using Objective = std::function<Mean(const Vars&)>;
Program trace_program(const Inputs& inputs, const Objective& objective, const Objective& metric = nullptr);

/// Convolution, relu, pool, tanh, a residual block with batch_norm, flatten, linear, relu, dropout, linear; inputs
/// "image" [1, 12, 12], "label", "wanted" [2].
ModelFunction small_function();
Model small_model();
Program small_program();
Program small_program(const Model& model);
/// The network of small_function with its outputs kept, for Phase::predict.
Graph small_network();
/// Elementwise functions of x [N, 6] whose result is kept, for Phase::predict.
Graph function_graph(const ModelFunction& function);

PlanRequest request_for(Phase phase, int64_t samples = 4);
/// Runs all passes before `pass`, verifying each.
Graph before(std::string_view pass, Graph graph, const PlanRequest& request);
/// The same with `pass` itself.
Graph after(std::string_view pass, Graph graph, const PlanRequest& request);
/// small_program or (Phase::predict) small_network after a pass.
Graph after(std::string_view pass, Phase phase = Phase::train);

/// Index of the nth node with this operation; fails the test (and throws) when there is none.
int32_t find(const Graph& graph, std::string_view op, int nth = 0);
Node& node(Graph& graph, std::string_view op, int nth = 0);
int count(const Graph& graph, std::string_view op);
/// The nth node's output 0.
ValueId output(const Graph& graph, std::string_view op, int nth = 0);
void erase(Graph& graph, int32_t index);
/// Moves a node to another place in the order; producers are renumbered.
void move(Graph& graph, int32_t from, int32_t to);
/// A node at a place in the order; returns its output 0.
ValueId insert(Graph& graph, int32_t at, std::string_view op, const std::vector<ValueId>& inputs,
               const Attributes& attributes = {}, Stage stage = Stage::forward);

struct Broken {
  const char* name;
  Phase phase;
  std::function<void(Graph&, PlanRequest&)> mutate;
  const char* rule;
};
std::ostream& operator<<(std::ostream& out, const Broken& broken);
inline std::string name_of(const testing::TestParamInfo<Broken>& given) { return given.param.name; }

/// Asserts that `graph` passes the verifier and, after the mutation, is refused as "<pass>: <rule>".
void expect_refused(std::string_view pass, const Broken& broken, Graph graph);
void expect_refused(std::string_view pass, const Broken& broken);
/// Ten of them, of ten names and ten rules.
void expect_ten_or_more(const std::vector<Broken>& table);

}  // namespace brisk::passes::test
