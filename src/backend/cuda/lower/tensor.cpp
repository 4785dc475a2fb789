// Dims, strides and bytes of operands; copies between layouts.
#include "backend/cuda/lower/tensor.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "brisk/kernels/layout.h"
#include "graph/op_table.h"

namespace brisk::backend::cuda {

using graph::Layout;

int64_t Tensor::count() const {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, [](int64_t a, int64_t b) { return a * b; });
}

std::vector<int64_t> Tensor::in_memory(const std::vector<int64_t>& by_dimension) const {
  std::vector<int64_t> list;
  for (const size_t dimension : order) list.push_back(by_dimension[dimension]);
  return list;
}

namespace {

void set_strides(Tensor& tensor) {
  const std::vector<int64_t> packed = packed_strides(tensor.in_memory(tensor.dims));
  tensor.strides.assign(tensor.dims.size(), 0);
  for (size_t i = 0; i < tensor.order.size(); ++i) tensor.strides[tensor.order[i]] = packed[i];
}

}  // namespace

Tensor tensor(const Call& call, const graph::Value& value) {
  Tensor made;
  made.dtype = value.type.dtype;
  made.batched = value.type.batched();
  if (made.batched) made.dims.push_back(value.type.rows * call.samples);
  made.dims.insert(made.dims.end(), value.type.shape.begin(), value.type.shape.end());
  made.order.resize(made.dims.size());
  std::iota(made.order.begin(), made.order.end(), size_t{0});
  if (value.layout == Layout::channels_last) made.order = {0, 2, 3, 1};
  set_strides(made);
  return made;
}

Tensor row_major(Tensor tensor) {
  std::iota(tensor.order.begin(), tensor.order.end(), size_t{0});
  set_strides(tensor);
  return tensor;
}

std::vector<int64_t> broadcast_strides(const Tensor& from, const Tensor& to, const std::vector<int64_t>& axes) {
  std::vector<int64_t> strides(to.dims.size(), 0);
  const auto lacks = [&](size_t dimension) {
    const auto axis = static_cast<int64_t>(dimension) - (to.batched ? 1 : 0);
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  };
  const size_t first = from.batched ? 1 : 0;
  size_t source = from.dims.size();
  for (size_t i = to.dims.size(); i-- > 0 && source > first;) {
    if (lacks(i)) continue;
    --source;
    if (from.dims[source] != 1) strides[i] = from.strides[source];
  }
  if (from.batched) strides[0] = from.strides[0];
  return strides;
}

int64_t bytes_of(const Call& call, const graph::ValueType& type) { return call.elements(type) * size_of(type.dtype); }

double operand_bytes(const Call& call) {
  std::set<graph::ValueId> operands(call.in.begin(), call.in.end());
  operands.insert(call.out.begin(), call.out.end());
  double bytes = 0;
  for (const graph::ValueId id : operands) bytes += static_cast<double>(bytes_of(call, call.graph.type(id)));
  return bytes;
}

double operations(const Call& call) {
  double sum = 0;
  for (const int32_t index : call.nodes) {
    const graph::Node& node = call.graph.nodes[static_cast<size_t>(index)];
    bool batched = false;
    for (const auto* list : {&node.inputs, &node.outputs})
      for (const graph::ValueId id : *list) batched = batched || call.graph.type(id).batched();
    sum += graph::flops(call.graph, node) * (batched ? static_cast<double>(call.samples) : 1);
  }
  return sum;
}

void launch(const Call& call, Lowering& lowering, std::string_view kernel, LaunchFunction run, int kernels) {
  lowering.launch(std::string(kernel), operand_bytes(call), operations(call), std::move(run), kernels);
}

bool is_gradient(const Call& call, int output) {
  return call.graph.value(call.out[static_cast<size_t>(output)]).place == graph::Place::gradient;
}

kernels::Activation activation_of(const Call& call) {
  const std::string& text = call.node.attributes.text("activation");  // inference has checked it
  if (text == "relu") return kernels::Activation::relu;
  if (text == "tanh") return kernels::Activation::tanh;
  if (text == "sigmoid") return kernels::Activation::sigmoid;
  if (text == "silu") return kernels::Activation::silu;
  return kernels::Activation::none;
}

Numbering numbering(const graph::Value& value) {
  if (value.layout != Layout::channels_last) return {};
  return {value.type.shape[0], value.type.shape[1] * value.type.shape[2]};
}

Line line_of(const Tensor& tensor, int64_t axis) {
  const size_t dimension = static_cast<size_t>(axis) + (tensor.batched ? 1 : 0);
  Line line;
  line.size = tensor.dims[dimension];
  line.inner = tensor.strides[dimension];
  line.outer = tensor.count() / (line.size * line.inner);
  return line;
}

void transpose(Lowering& lowering, Location from, Location to, int64_t batch, int64_t rows, int64_t columns,
               DType dtype) {
  const auto bytes = 2.0 * static_cast<double>(batch * rows * columns * size_of(dtype));
  lowering.launch("transpose", bytes, 0, [=](const Operands& o, CudaStream stream) {
    kernels::transpose(
        {.batch = batch, .columns = columns, .from = dtype, .rows = rows, .to = dtype, .x = from.at(o), .y = to.at(o)},
        stream);
  });
}

void copy(Lowering& lowering, Location from, const Tensor& source, Location to, const Tensor& target) {
  std::vector<int64_t> dims = target.in_memory(target.dims), read = target.in_memory(source.strides),
                       write = target.in_memory(target.strides);
  collapse(dims, {&read, &write});
  const DType dtype = target.dtype;
  const auto bytes = 2.0 * static_cast<double>(target.count() * size_of(dtype));
  if (dims.size() == 1 && read == write) {
    lowering.launch("copy", bytes, 0, [=, count = dims[0]](const Operands& o, CudaStream stream) {
      kernels::cast({.count = count, .from = dtype, .to = dtype, .x = from.at(o), .y = to.at(o)}, stream);
    });
    return;
  }
  // The last two dimensions change places.
  const size_t last = dims.size() - 1;
  if ((last == 1 || last == 2) && write == packed_strides(dims) && read[last - 1] == 1 &&
      read[last] == dims[last - 1] && (last == 1 || read[0] == write[0]))
    return transpose(lowering, from, to, last == 2 ? dims[0] : 1, dims[last], dims[last - 1], dtype);
  lowering.launch("copy_box", bytes, 0, [=](const Operands& o, CudaStream stream) {
    kernels::copy_box(
        {.dims = dims, .dtype = dtype, .x = from.at(o), .x_strides = read, .y = to.at(o), .y_strides = write}, stream);
  });
}

Relaid::Relaid(const Call& call, Lowering& lowering, const graph::Value& value, Layout wanted)
    : lowering_(lowering), dtype_(value.type.dtype) {
  const graph::ValueType& type = value.type;
  images_ = type.rows * call.samples;
  channels_ = type.shape.rank() > 0 ? type.shape[0] : 1;
  inner_ = type.shape.count() / channels_;
  const bool last = value.layout == Layout::channels_last;
  turns_ = last != (wanted == Layout::channels_last) && channels_ > 1 && inner_ > 1;
  from_rows_ = last ? inner_ : channels_;
  from_columns_ = last ? channels_ : inner_;
}

Location Relaid::read(Location from) {
  if (!turns_ || from.kind == Location::Kind::none) return from;
  const Location turned = in_workspace(lowering_, images_ * channels_ * inner_ * size_of(dtype_));
  transpose(lowering_, from, turned, images_, from_rows_, from_columns_, dtype_);
  return turned;
}

Location Relaid::write(Location to) {
  if (!turns_) return to;
  const Location turned = in_workspace(lowering_, images_ * channels_ * inner_ * size_of(dtype_));
  written_.emplace_back(turned, to);
  return turned;
}

void Relaid::give_back() {
  for (const auto& [turned, to] : written_)
    transpose(lowering_, turned, to, images_, from_columns_, from_rows_, dtype_);
}

SummedOutputs::SummedOutputs(const Call& call, Lowering& lowering, const std::vector<int>& outputs)
    : call_(call), lowering_(lowering) {
  const auto gradients =
      std::count_if(outputs.begin(), outputs.end(), [&](int output) { return is_gradient(call, output); });
  accumulates_ = gradients == static_cast<std::ptrdiff_t>(outputs.size());
  for (const int i : outputs) {
    const bool apart = is_gradient(call, i) && !accumulates_;
    places_.emplace_back(i, apart ? in_workspace(lowering, bytes_of(call, call.output(i))) : output(i));
  }
}

Location SummedOutputs::location(int output) const {
  return std::find_if(places_.begin(), places_.end(), [&](const auto& entry) { return entry.first == output; })->second;
}

void SummedOutputs::give_back() {
  for (const auto& [i, from] : places_)
    if (from.kind == Location::Kind::workspace) store_gradient(call_, lowering_, from, i);
}

void store_gradient(const Call& call, Lowering& lowering, Location from, int output_index) {
  const int64_t count = call.output(output_index).elements();
  const Location to = output(output_index);
  lowering.launch("store_gradient", 3.0 * static_cast<double>(count * size_of(DType::f32)), static_cast<double>(count),
                  [=](const Operands& o, CudaStream stream) {
                    kernels::store_gradient(
                        {.count = count, .gradient = from.at(o), .output = to.as<float>(o), .run = o.run}, stream);
                  });
}

}  // namespace brisk::backend::cuda
