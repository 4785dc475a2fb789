// Binds and executes; one thread a program.
#include "backend/cpu/onednn/program.h"

#include "backend/cpu/onednn/one_thread.h"

namespace brisk::backend::cpu {

const dnnl::engine& onednn_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

char* Binding::in(const Operands& operands) const {
  switch (from) {
    case input:
      return static_cast<char*>(const_cast<void*>(operands.in[index])) + offset;
    case output:
      return static_cast<char*>(operands.out[index]) + offset;
    case workspace:
      return operands.workspace + offset;
    case scratch:
      return operands.scratch + offset;
  }
  return nullptr;
}

dnnl::memory Program::add(const dnnl::memory::desc& description, Binding binding) {
  memories_.emplace_back(dnnl::memory(description, onednn_engine(), nullptr), binding);
  return memories_.back().first;
}

void Program::step(dnnl::primitive primitive, const std::vector<std::pair<int, dnnl::memory>>& arguments) {
  Step made{std::move(primitive), {}};
  for (const auto& [name, memory] : arguments) made.arguments.push_back({name, memory.get()});
  steps_.push_back(std::move(made));
}

void Program::reorder(const dnnl::memory& from, const dnnl::memory& to) {
  step(dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

dnnl::memory Program::reordered(const dnnl::memory& from, const dnnl::memory::desc& wanted, Binding binding) {
  if (from.get_desc() == wanted) return from;
  dnnl::memory to = add(wanted, binding);
  reorder(from, to);
  return to;
}

bool Program::run(const Operands& operands) const {
  const OneThread one;
  for (const auto& [memory, binding] : memories_) {
    if (dnnl_memory_set_data_handle_v2(memory.get(), binding.in(operands), stream_.get()) != dnnl_success) return false;
  }
  for (const Step& step : steps_) {
    const auto count = static_cast<int>(step.arguments.size());
    if (dnnl_primitive_execute(step.primitive.get(), stream_.get(), count, step.arguments.data()) != dnnl_success) {
      return false;
    }
  }
  return dnnl_stream_wait(stream_.get()) == dnnl_success;
}

}  // namespace brisk::backend::cpu
