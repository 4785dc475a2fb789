// The bytes of a model: parameters and buffers in canonical order, made when first needed.
#pragma once

#include <memory>

#include "core/arena.h"
#include "graph/model_state.h"

namespace brisk::exec {

class Store {
 public:
  /// Allocates the arenas and draws the initial values: pure in (seed, model name, parameter name, element).
  explicit Store(const ModelState& model);
  /// A copy of the bytes of another model with the same segments.
  Store(const ModelState& model, const Store& from);
  float* data(const graph::Segment& segment) {
    return reinterpret_cast<float*>((segment.spec.buffer ? buffers_ : parameters_).data()) + segment.offset;
  }
  int64_t parameter_bytes() const { return parameters_.bytes(); }
  int64_t buffer_bytes() const { return buffers_.bytes(); }

 private:
  Arena parameters_;
  Arena buffers_;
};

/// The model's store, made now if it was not; by one thread if several ask at once.
Store& store_of(ModelState& model);
/// Bytes of its arenas; 0 while they are not made.
int64_t store_bytes(ModelState& model);

/// Copies between the canonical order and PyTorch's layout (accumulating nothing).
void to_torch(const graph::ParameterSpec& spec, const float* canonical, float* torch);
void from_torch(const graph::ParameterSpec& spec, const float* torch, float* canonical);

}  // namespace brisk::exec
