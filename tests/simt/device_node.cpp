// One node lowered for the default profile, over guarded, poisoned device memory.
#include "simt/device_node.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "backend/cuda/cuda_target.h"
#include "backend/cuda/profiles.h"
#include "core/text.h"
#include "graph/low_forms.h"
#include "graph/op_table.h"
#include "simt/device_buffer.h"

namespace brisk::test {
namespace {

namespace cuda = backend::cuda;
using graph::Graph;
using graph::Node;
using graph::Place;
using graph::Value;
using graph::ValueId;

const cuda::Profile& profile() { return *cuda::find_profile("h200"); }

int64_t element_size(const Value& value) { return value.place == Place::totals ? 8 : size_of(value.type.dtype); }

/// Position of element `flat` (row-major, rows x N leading) in the value's memory.
size_t position(const Value& value, int64_t flat) {
  if (value.layout != graph::Layout::channels_last) return static_cast<size_t>(flat);
  const int64_t channels = value.type.shape[0], pixels = value.type.shape[1] * value.type.shape[2];
  const int64_t image = flat / (channels * pixels), channel = flat / pixels % channels, pixel = flat % pixels;
  return static_cast<size_t>((image * pixels + pixel) * channels + channel);
}

void write(const Value& value, std::byte* memory, size_t at, double x) {
  std::byte* const to = memory + at * static_cast<size_t>(element_size(value));
  const auto put = [to](auto element) { std::memcpy(to, &element, sizeof(element)); };
  if (value.place == Place::totals) return put(x);
  switch (value.type.dtype) {
    case DType::f32:
      return put(static_cast<float>(x));
    case DType::f16:
      return put(__float2half_rn(static_cast<float>(x)));
    case DType::bf16:
      return put(__float2bfloat16_rn(static_cast<float>(x)));
    case DType::i32:
      return put(static_cast<int32_t>(x));
    case DType::i64:
      return put(static_cast<int64_t>(x));
    default:
      return put(static_cast<uint8_t>(x));
  }
}

template <class T>
T element(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

double read(const Value& value, const std::byte* memory, size_t at) {
  const std::byte* const from = memory + at * static_cast<size_t>(element_size(value));
  if (value.place == Place::totals) return element<double>(from);
  switch (value.type.dtype) {
    case DType::f32:
      return static_cast<double>(element<float>(from));
    case DType::f16:
      return static_cast<double>(__half2float(element<__half>(from)));
    case DType::bf16:
      return static_cast<double>(__bfloat162float(element<__nv_bfloat16>(from)));
    case DType::i32:
      return element<int32_t>(from);
    case DType::i64:
      return static_cast<double>(element<int64_t>(from));
    default:
      return element<uint8_t>(from);
  }
}

/// Device memory between two guards; fresh memory is poison, NaN as a float of any width.
class DeviceMemory {
 public:
  explicit DeviceMemory(int64_t bytes) : bytes_(static_cast<size_t>(bytes)), block_(bytes_ + 2 * kGuard) {
    std::vector<std::byte> begin(bytes_ + 2 * kGuard, kPattern);
    std::fill_n(begin.begin() + kGuard, bytes_, std::byte{0xFF});
    block_.upload(begin);
  }
  std::byte* data() const { return block_.data() + kGuard; }
  int64_t bytes() const { return static_cast<int64_t>(bytes_); }
  void upload(const std::vector<std::byte>& content) {
    simt::check(cudaMemcpy(data(), content.data(), content.size(), cudaMemcpyHostToDevice));
  }
  std::vector<std::byte> download() const {
    const std::vector<std::byte> all = block_.download();
    return {all.begin() + kGuard, all.end() - kGuard};
  }
  bool intact() const {
    const std::vector<std::byte> all = block_.download();
    const auto untouched = [](std::byte b) { return b == kPattern; };
    return std::all_of(all.begin(), all.begin() + kGuard, untouched) &&
           std::all_of(all.end() - kGuard, all.end(), untouched);
  }

 private:
  static constexpr int kGuard = 256;
  static constexpr std::byte kPattern{0x5A};
  size_t bytes_;
  simt::DeviceBuffer<std::byte> block_;
};

Graph build_low(const DeviceCase& made) {
  Graph graph = build(made.node_case, graph::Layout::plain);
  const auto target = cuda::make_target(profile());
  const Node& node = graph.nodes[0];
  for (Value& value : graph.values)
    if (value.place == Place::activation && value.type.batched()) value.layout = target->layout(value.type);
  if (made.dtype == DType::f32) return graph;
  std::vector<ValueId> low;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (graph::low_input(graph, node, static_cast<int>(i))) low.push_back(node.inputs[i]);
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if ((graph::low_form(node).outputs >> i & 1u) != 0) low.push_back(node.outputs[i]);
  for (const ValueId id : low)
    if (graph.type(id).dtype == DType::f32) graph.value(id).type.dtype = made.dtype;
  return graph;
}

int64_t count_of(const Value& value, int64_t samples) {
  return value.type.elements() * (value.type.batched() ? samples : 1);
}

/// One node lowered, with its memory.
class Runner {
 public:
  Runner(const DeviceCase& made, int in_place, std::string_view implementation, Outcome& outcome)
      : case_(made.node_case),
        graph_(build_low(made)),
        in_place_(in_place),
        implementation_(implementation),
        outcome_(outcome) {}

  void run() {
    const cuda::Lowering lowering = cuda::lower(graph_, {0}, case_.samples, profile(), implementation_);
    allocate(lowering);
    if (lowering.prepare) lowering.prepare(operands_);
    for (const cuda::Launch& launch : lowering.launches) launch.run(operands_, nullptr);
    simt::check(cudaDeviceSynchronize());
    check_memory();
    keep();
  }

 private:
  const Node& node() const { return graph_.nodes[0]; }
  const Value& input(size_t i) const { return graph_.value(node().inputs[i]); }
  const Value& output(size_t i) const { return graph_.value(node().outputs[i]); }
  void problem(const std::string& what) { outcome_.problems.push_back(what); }

  std::vector<std::byte> pack(const Value& value, const std::vector<double>& data) const {
    std::vector<std::byte> content(data.size() * static_cast<size_t>(element_size(value)));
    for (size_t i = 0; i < data.size(); ++i)
      write(value, content.data(), position(value, static_cast<int64_t>(i)), data[i]);
    return content;
  }

  void allocate(const cuda::Lowering& lowering) {
    for (size_t i = 0; i < node().inputs.size(); ++i) {
      originals_.push_back(pack(input(i), case_.inputs[i].data));
      inputs_.push_back(std::make_unique<DeviceMemory>(static_cast<int64_t>(originals_.back().size())));
      inputs_.back()->upload(originals_.back());
      in_.push_back(inputs_.back()->data());
    }
    for (size_t i = 0; i < node().outputs.size(); ++i) {
      const Value& value = output(i);
      outputs_.push_back(std::make_unique<DeviceMemory>(count_of(value, case_.samples) * element_size(value)));
      if (i < case_.before.size() && !case_.before[i].empty()) outputs_.back()->upload(pack(value, case_.before[i]));
      const int shared = i == 0 && in_place_ >= 0 ? in_place_ : shared_input(i);
      results_.push_back(shared >= 0 ? inputs_[static_cast<size_t>(shared)].get() : outputs_.back().get());
      out_.push_back(results_.back()->data());
    }
    workspace_ = std::make_unique<DeviceMemory>(lowering.workspace_bytes);
    counters_.upload(std::vector<std::byte>(kernels::kCounterBytes));
    upload(status_, case_.faulted ? kernels::Status{.kind = kernels::Status::kLabel} : kernels::Status{});
    upload(run_, kernels::RunState{case_.run.attempt, case_.run.first_sample, case_.run.accumulate});
    operands_.in = in_.data();
    operands_.out = out_.data();
    operands_.accumulate = case_.run.accumulate;
    operands_.counters = reinterpret_cast<int32_t*>(counters_.data());
    operands_.node = 0;
    operands_.workspace = reinterpret_cast<char*>(workspace_->data());
    for (const cuda::Table& table : lowering.tables) {
      std::vector<std::byte> content(static_cast<size_t>(table.bytes));
      table.fill(operands_, content.data());
      tables_.push_back(std::make_unique<DeviceMemory>(table.bytes));
      tables_.back()->upload(content);
      table_pointers_.push_back(tables_.back()->data());
    }
    operands_.tables = table_pointers_.data();
    operands_.run = reinterpret_cast<const kernels::RunState*>(run_.data());
    operands_.status = reinterpret_cast<kernels::Status*>(status_.data());
  }

  template <class T>
  static void upload(DeviceMemory& memory, const T& value) {
    std::vector<std::byte> content(sizeof(T));
    std::memcpy(content.data(), &value, sizeof(T));
    memory.upload(content);
  }

  /// The input whose memory an output changes: the same slot of the same store.
  int shared_input(size_t i) const {
    const Value& out = output(i);
    constexpr Place kShared[] = {Place::parameter, Place::buffer, Place::moment1,
                                 Place::moment2,   Place::staged, Place::state};
    if (std::find(std::begin(kShared), std::end(kShared), out.place) == std::end(kShared)) return -1;
    for (size_t k = 0; k < node().inputs.size(); ++k)
      if (input(k).place == out.place && input(k).slot == out.slot) return static_cast<int>(k);
    return -1;
  }

  bool is_result(const DeviceMemory* memory) const {
    return std::find(results_.begin(), results_.end(), memory) != results_.end();
  }

  void check_memory() {
    if (!workspace_->intact()) problem("wrote outside its workspace");
    const std::vector<std::byte> counters = counters_.download();
    if (!std::all_of(counters.begin(), counters.end(), [](std::byte b) { return b == std::byte{0}; }))
      problem("left counters that are not zero");
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i]->intact()) problem(cat("wrote outside input ", i));
      if (!is_result(inputs_[i].get()) && inputs_[i]->download() != originals_[i]) problem(cat("changed input ", i));
    }
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (!outputs_[i]->intact()) problem(cat("wrote outside output ", i));
  }

  void keep() {
    const auto status = element<kernels::Status>(status_.download().data());
    outcome_.status = static_cast<cpu::Status::Kind>(status.kind);
    outcome_.sample = status.sample;
    outcome_.value = status.value;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Value& value = output(i);
      const std::vector<std::byte> content = results_[i]->download();
      oracle::Array array = oracle::zeros(value.type, case_.samples);
      bool unwritten = false;
      for (size_t k = 0; k < array.data.size(); ++k) {
        const size_t at = position(value, static_cast<int64_t>(k));
        array.data[k] = read(value, content.data(), at);
        unwritten = unwritten || poison(value, content, at);
      }
      if (unwritten) problem(cat("some of output ", i, " is not written"));
      outcome_.outputs.push_back(std::move(array));
    }
  }

  static bool poison(const Value& value, const std::vector<std::byte>& content, size_t at) {
    const auto size = static_cast<size_t>(element_size(value));
    const DType dtype = value.type.dtype;
    if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16) return false;  // integers may be -1
    const std::byte* const first = content.data() + at * size;
    return std::all_of(first, first + size, [](std::byte b) { return b == std::byte{0xFF}; });
  }

  const NodeCase& case_;
  const Graph graph_;
  const int in_place_;
  const std::string_view implementation_;
  Outcome& outcome_;
  std::vector<std::vector<std::byte>> originals_;
  std::vector<std::unique_ptr<DeviceMemory>> inputs_, outputs_, tables_;
  std::vector<const DeviceMemory*> results_;
  std::vector<const void*> in_, table_pointers_;
  std::vector<void*> out_;
  std::unique_ptr<DeviceMemory> workspace_;
  DeviceMemory counters_{kernels::kCounterBytes}, status_{sizeof(kernels::Status)}, run_{sizeof(kernels::RunState)};
  cuda::Operands operands_;
};

double rounded(double value, DType dtype) {
  const auto narrow = static_cast<float>(value);
  if (dtype == DType::f16) return static_cast<double>(__half2float(__float2half_rn(narrow)));
  if (dtype == DType::bf16) return static_cast<double>(__bfloat162float(__float2bfloat16_rn(narrow)));
  return static_cast<double>(narrow);
}

}  // namespace

bool has_form(const NodeCase& node_case, DType dtype) {
  if (dtype == DType::f32) return true;
  const Graph graph = build(node_case, graph::Layout::plain);
  const Node& node = graph.nodes[0];
  if (graph::low_form(node).format == graph::Format::f32) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (graph::low_input(graph, node, static_cast<int>(i))) return true;
  return false;
}

DeviceCase device_case(NodeCase node_case, DType dtype) {
  DeviceCase made{std::move(node_case), dtype};
  if (made.node_case.op == "total") made.node_case.before.clear();  // a device's totals are those of one run
  const Graph graph = build_low(made);
  for (size_t i = 0; i < made.node_case.inputs.size(); ++i)
    if (graph::is_low(graph.type(graph.nodes[0].inputs[i]).dtype))
      for (double& value : made.node_case.inputs[i].data) value = rounded(value, dtype);
  return made;
}

namespace {

backend::Choice choose(const DeviceCase& device_case) {
  return cuda::make_target(profile())->choose(build_low(device_case), {0}, device_case.node_case.samples);
}

}  // namespace

std::string declined(const DeviceCase& device_case) {
  const backend::Choice choice = choose(device_case);
  if (!choice.implementation.empty()) return "";
  return choice.declined.empty() ? "no reason" : choice.declined.front();
}

std::string chosen(const DeviceCase& device_case) { return choose(device_case).implementation; }

Outcome run_on_device(const DeviceCase& device_case, int in_place, std::string_view implementation) {
  Outcome outcome;
  Runner(device_case, in_place, implementation, outcome).run();
  return outcome;
}

std::vector<int> in_place_inputs(const DeviceCase& device_case) {
  const Graph graph = build_low(device_case);
  const auto target = cuda::make_target(profile());
  std::vector<int> inputs;
  for (size_t i = 0; i < device_case.node_case.inputs.size(); ++i)
    if (device_case.node_case.inputs[i].place == Place::activation && target->in_place(graph, 0, static_cast<int>(i)))
      inputs.push_back(static_cast<int>(i));
  return inputs;
}

std::vector<DType> stored_types(const DeviceCase& device_case) {
  const Graph graph = build_low(device_case);
  std::vector<DType> types;
  for (const ValueId id : graph.nodes[0].outputs) types.push_back(graph.type(id).dtype);
  return types;
}

}  // namespace brisk::test
