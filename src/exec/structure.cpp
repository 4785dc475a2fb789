#include "exec/structure.h"

#include <algorithm>

#include "core/text.h"
#include "graph/op_table.h"

namespace brisk::exec {
namespace {

using graph::Graph;
using graph::NamedValue;
using graph::Node;
using graph::ParameterRef;

[[noreturn]] void refuse(const ModelState& given, const std::string& why) {
  throw Error(ErrorCode::weights, cat("model '", given.name, "'"),
              cat("is of another structure than the one that was compiled: ", why));
}

void check_parameters(const ModelState& wanted, const ModelState& given) {
  const std::vector<ParameterRef>&ours = wanted.graph.parameters, &theirs = given.graph.parameters;
  for (size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    const ParameterRef &a = ours[i], &b = theirs[i];
    if (a.name != b.name) refuse(given, cat("it has ", b.name, " where ", a.name, " is wanted"));
    if (!(a.shape == b.shape)) refuse(given, cat(a.name, " is ", b.shape, ", wanted is ", a.shape));
    if (a.store != b.store || a.segment != b.segment || a.buffer != b.buffer)
      refuse(given, cat(a.name, " belongs to another model that it calls"));
  }
  if (ours.size() != theirs.size())
    refuse(given, cat("it has ", theirs.size(), " parameters and buffers, wanted are ", ours.size()));
}

/// Random streams are no part of the structure: dropout is off.
bool same_node(const Node& a, const Node& b) {
  return a.op == b.op && a.inputs == b.inputs && a.outputs == b.outputs &&
         (a.op->random || a.attributes == b.attributes);
}

bool same_named(const NamedValue& a, const NamedValue& b) { return a.name == b.name && a.value == b.value; }

}  // namespace

void check_same_structure(const ModelState& wanted, const ModelState& given) {
  check_parameters(wanted, given);
  const Graph &a = wanted.graph, &b = given.graph;
  const auto equal = [](const auto& x, const auto& y, auto same) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), same);
  };
  if (!equal(a.inputs, b.inputs, same_named) || !equal(a.outputs, b.outputs, same_named))
    refuse(given, "its inputs or outputs differ");
  for (size_t i = 0; i < std::min(a.nodes.size(), b.nodes.size()); ++i)
    if (!same_node(a.nodes[i], b.nodes[i]))
      refuse(given, cat("it has ", graph::label(b.nodes[i]), " where ", graph::label(a.nodes[i]), " is wanted"));
  if (a.nodes.size() != b.nodes.size())
    refuse(given, cat("it has ", b.nodes.size(), " operations, wanted are ", a.nodes.size()));
  for (const NamedValue& input : a.inputs)
    if (!(a.type(input.value) == b.type(input.value))) refuse(given, cat("input ", input.name, " is of another shape"));
}

}  // namespace brisk::exec
