// The segment table: where each parameter of a model lies. The order is that of a post-order walk of the graph from its
// outputs, the same with every compiler; every segment starts at a multiple of 64 bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "brisk/model.h"

namespace brisk::graph {

/// How a canonical parameter appears to users and in files (PyTorch's layout).
enum class TorchLayout : uint8_t {
  same,        ///< linear weights (out x in), vectors
  convolution  ///< stored O,H,W,I; seen as O,I,H,W
};

/// What is known of a parameter when it is made.
struct ParameterSpec {
  std::string name;   ///< full, final after numbering: "layer1.0.bn1.weight"
  Shape shape;        ///< canonical
  Shape torch_shape;  ///< as users see it
  TorchLayout torch = TorchLayout::same;
  Init init;
  std::vector<float> values;  ///< the first values one by one, as files order them; empty: as init says
  bool decay = true;          ///< weight decay applies by default (two or more dimensions, and not switched off)
  bool buffer = false;
  Where where;
  int32_t layer = -1;  ///< the layer that made it (naming only)
  std::string leaf;    ///< "weight"
};

/// A parameter in its store.
struct Segment {
  ParameterSpec spec;
  int64_t offset = 0;  ///< floats from the start of the arena (parameters and buffers have one each)
  int64_t count = 0;   ///< floats
  bool frozen = false;
};

}  // namespace brisk::graph
