// Where operands lie while a node runs, and how: what the lowerings share.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/cuda/lowering.h"
#include "brisk/kernels/activation.h"
#include "core/strides.h"

namespace brisk::backend::cuda {

/// An input, an output, or a region of the workspace.
struct Location {
  enum class Kind : uint8_t { none, input, output, workspace } kind = Kind::none;
  int64_t index = 0;  ///< of the operand; or byte offset
  int64_t first = 0;  ///< bytes behind its beginning

  void* at(const Operands& operands) const {
    switch (kind) {
      case Kind::input:  // no launcher writes through what it calls an input
        return static_cast<char*>(const_cast<void*>(operands.in[index])) + first;
      case Kind::output:
        return static_cast<char*>(operands.out[index]) + first;
      case Kind::workspace:
        return operands.workspace + index + first;
      case Kind::none:
        break;
    }
    return nullptr;
  }
  template <class T>
  T* as(const Operands& operands) const {
    return static_cast<T*>(at(operands));
  }
};

inline Location input(int i) { return {Location::Kind::input, i}; }
/// none where the node has no such input.
inline Location input_if(const Call& call, int i) { return i < call.inputs() ? input(i) : Location(); }
inline Location output(int i) { return {Location::Kind::output, i}; }
inline Location in_workspace(Lowering& lowering, int64_t bytes) {
  return {Location::Kind::workspace, lowering.workspace(bytes)};
}

/// A value as the user sees it (rows x N first when it has a batch), and how many elements apart neighbours lie.
struct Tensor {
  DType dtype = DType::f32;
  bool batched = false;
  std::vector<int64_t> dims, strides;
  std::vector<size_t> order;  ///< dimensions from the slowest to the fastest in memory

  int64_t count() const;
  /// A list by dimension in the order of memory.
  std::vector<int64_t> in_memory(const std::vector<int64_t>& by_dimension) const;
};

Tensor tensor(const Call& call, const graph::Value& value);
inline Tensor input_tensor(const Call& call, int i) {
  return tensor(call, call.graph.value(call.in[static_cast<size_t>(i)]));
}
inline Tensor output_tensor(const Call& call, int i) {
  return tensor(call, call.graph.value(call.out[static_cast<size_t>(i)]));
}
/// The same values row-major.
Tensor row_major(Tensor tensor);
/// How `from` is read while iterating over `to`: strides by dimension of `to`, 0 where it repeats. `axes`: dimensions
/// of a sample of `to` that `from` lacks; without them the sizes align from the right.
std::vector<int64_t> broadcast_strides(const Tensor& from, const Tensor& to, const std::vector<int64_t>& axes = {});

int64_t bytes_of(const Call& call, const graph::ValueType& type);
/// Of all operands, each once.
double operand_bytes(const Call& call);
/// Operations of the call's nodes for all samples.
double operations(const Call& call);
/// The node's one launch: all its bytes and operations.
void launch(const Call& call, Lowering& lowering, std::string_view kernel, LaunchFunction run, int kernels = 1);

/// Whether the output is a parameter's gradient, to which a later micro-batch adds.
bool is_gradient(const Call& call, int output);
kernels::Activation activation_of(const Call& call);
/// The stream of random numbers.
inline uint64_t key_of(const graph::Node& node) { return static_cast<uint64_t>(node.attributes.integer("stream")); }

/// How a kernel that numbers elements channels first sees a sample.
struct Numbering {
  int64_t channels = 1, positions = 1;
};
Numbering numbering(const graph::Value& value);

/// An axis of a sample as it lies: [outer][size][inner].
struct Line {
  int64_t outer = 1, size = 1, inner = 1;
};
Line line_of(const Tensor& tensor, int64_t axis);

/// A launch that copies `from` to `to`, of one shape, whatever the layouts are.
void copy(Lowering& lowering, Location from, const Tensor& source, Location to, const Tensor& target);
/// [batch][rows][columns] to [batch][columns][rows].
void transpose(Lowering& lowering, Location from, Location to, int64_t batch, int64_t rows, int64_t columns,
               DType dtype);

/// Batched values of one shape [channels, ...] in the order that a kernel takes; those that lie in another are turned
/// in the workspace.
class Relaid {
 public:
  /// channels_last: as rows x channels; plain: row-major.
  Relaid(const Call& call, Lowering& lowering, const graph::Value& value, graph::Layout wanted);
  int64_t channels() const { return channels_; }
  int64_t rows() const { return images_ * inner_; }  ///< all elements / channels
  /// The input, or a turned copy of it.
  Location read(Location from);
  /// Where to write an output; give_back(), behind the kernel, makes the output of it.
  Location write(Location to);
  void give_back();

 private:
  Lowering& lowering_;
  DType dtype_;
  int64_t images_ = 1, channels_ = 1, inner_ = 1;
  int64_t from_rows_ = 1, from_columns_ = 1;  ///< of an input's matrices
  bool turns_ = false;
  std::vector<std::pair<Location, Location>> written_;
};

/// Adds f32 `from` to an output that is a gradient, or overwrites it, as the run says.
void store_gradient(const Call& call, Lowering& lowering, Location from, int output);

/// Gradients of parameters that one kernel writes together: they add up where they are gradients of a window.
class SummedOutputs {
 public:
  SummedOutputs(const Call& call, Lowering& lowering, const std::vector<int>& outputs);
  Location location(int output) const;
  /// What the launcher's `accumulate` is.
  bool accumulates() const { return accumulates_; }
  /// Behind the kernel.
  void give_back();

 private:
  const Call& call_;
  Lowering& lowering_;
  std::vector<std::pair<int, Location>> places_;
  bool accumulates_ = false;
};

}  // namespace brisk::backend::cuda
