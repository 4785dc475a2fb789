// Which operations there are in 16 bits, and which of their operands have that type then: the table behind the
// precision pass and the op table's types.
#pragma once

#include <cstdint>

#include "graph/graph.h"

namespace brisk::graph {

inline bool is_low(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

enum class Format : uint8_t {
  f32,      ///< reads and makes f32: softmax, losses, exp, log and the like, and all that the table does not name
  follows,  ///< 16 bits when all the batched values that it reads are (in the backward stage: the forward ones among
            ///< them)
  low,      ///< always 16 bits: matrix products and convolutions
};

/// Operands by bit. Of a node in 16 bits, `inputs` are 16 bits, of an elementwise operation those with a batch; all
/// others, and the outputs that `outputs` leaves out, are as in f32: parameters but matrices, statistics, gradients of
/// parameters, sums.
struct LowForm {
  Format format = Format::f32;
  uint32_t inputs = 0;
  uint32_t outputs = 0;
};

/// Of a node that reads or makes a value with a batch; others compute in f32.
LowForm low_form(const Node& node);
/// Whether input i has 16 bits in the node's 16-bit form.
bool low_input(const Graph& graph, const Node& node, int i);
/// The 16-bit type that a node reads; f32: none. Throws Error [shape] when it reads two, or one where it cannot.
DType low_type(const Graph& graph, const Node& node);

}  // namespace brisk::graph
