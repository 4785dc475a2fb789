// A training step in double precision: the program that a Step would compile, taken through the passes that give it its
// meaning (trace, infer, compose, autodiff, update, precision) and evaluated by the reference. No backend, no plan, no
// float but where the recipe rounds to 16 bits.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "brisk/brisk.h"
#include "graph/graph.h"
#include "graph/trace.h"
#include "oracle/oracle.h"

namespace brisk::golden {

class DoubleStep {
 public:
  // Starts from the model's parameters. The optimizer's weight decay is taken from its first group, for all parameters.
  DoubleStep(const Model& model, const Objective& objective, const Inputs& inputs, Optimizer optimizer, int64_t samples,
             Precision precision = Precision::f32);

  // One update. Inputs by name, row-major. Returns the objective before it.
  double run(const std::map<std::string, std::vector<double>>& inputs);
  // In PyTorch's layout. Gradients are those of the last run.
  std::vector<double> parameter(const std::string& name) const;
  std::vector<double> gradient(const std::string& name) const;

 private:
  void trace(const Objective& objective, const Inputs& inputs);
  void compile(Precision precision);
  oracle::Array initial(const graph::Value& value) const;
  double scalar(const std::string& name) const;
  int32_t slot_of(const std::string& name) const;
  std::vector<double> to_torch(int32_t slot, const std::vector<double>& canonical) const;

  std::vector<std::shared_ptr<ModelState>> models_;
  graph::Graph graph_;
  Optimizer optimizer_;
  int64_t samples_ = 0;
  int64_t updates_ = 0;
  const Model& model_;
  // Memory that lives from run to run, by place and slot.
  std::map<std::pair<graph::Place, int32_t>, oracle::Array> memory_;
};

}  // namespace brisk::golden
