// Frozen layers of a program.
#include "exec/freeze.h"

#include <algorithm>

#include "graph/op_table.h"
#include "optim/glob.h"

namespace brisk::exec {
namespace {

bool matched(const ModelState& model, const std::string& name) {
  const auto last = std::find_if(model.freezes.rbegin(), model.freezes.rend(),
                                 [&](const auto& entry) { return optim::glob_matches(entry.first, name); });
  return last != model.freezes.rend() && last->second;
}

}  // namespace

void mark_frozen(graph::Graph& program, const std::vector<std::shared_ptr<ModelState>>& models) {
  for (graph::Node& node : program.nodes) {
    if (!node.op->training_only) continue;
    const auto& model = models[static_cast<size_t>(node.store)];
    node.frozen = model && matched(*model, node.name);
    for (const graph::ValueId id : node.inputs) {
      const graph::Value& value = program.value(id);
      if (value.place != graph::Place::parameter) continue;
      const graph::ParameterRef& ref = program.parameters[static_cast<size_t>(value.slot)];
      node.frozen |= models[static_cast<size_t>(ref.store)]->segments[static_cast<size_t>(ref.segment)].frozen;
    }
  }
}

}  // namespace brisk::exec
