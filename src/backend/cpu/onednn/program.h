// A fixed list of oneDNN primitives over memory that is bound anew at each run.
#pragma once

#include <dnnl.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "backend/cpu/kernel.h"

namespace brisk::backend::cpu {

const dnnl::engine& onednn_engine();

/// Where bytes are during a run.
struct Binding {
  enum From : uint8_t { input, output, workspace, scratch };
  From from = input;
  int index = 0;       ///< of the operand
  int64_t offset = 0;  ///< bytes
  char* in(const Operands& operands) const;
};

/// One unit of a phase. Built while lowering; a run allocates nothing of its own.
class Program {
 public:
  dnnl::memory add(const dnnl::memory::desc& description, Binding binding);
  void step(dnnl::primitive primitive, const std::vector<std::pair<int, dnnl::memory>>& arguments);
  /// Copies into another format; no step where both are one.
  dnnl::memory reordered(const dnnl::memory& from, const dnnl::memory::desc& wanted, Binding binding);
  void reorder(const dnnl::memory& from, const dnnl::memory& to);
  /// False when a primitive failed.
  bool run(const Operands& operands) const;

 private:
  struct Step {
    dnnl::primitive primitive;
    std::vector<dnnl_exec_arg_t> arguments;
  };
  std::vector<std::pair<dnnl::memory, Binding>> memories_;
  std::vector<Step> steps_;
  dnnl::stream stream_{onednn_engine()};
};

}  // namespace brisk::backend::cpu
