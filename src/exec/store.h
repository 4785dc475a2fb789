// The values of a model: parameters and buffers in canonical order, made when first needed. They live in host memory;
// a device that trains or evaluates them has a copy, shared by all its steps. Who changes a copy makes the others old;
// an old one is renewed when it is asked for.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "backend/backend.h"
#include "core/arena.h"
#include "exec/device_arena.h"
#include "graph/model_state.h"

namespace brisk::exec {

class Store {
 public:
  /// Allocates the arenas and draws the initial values: pure in (seed, model name, parameter name, element).
  explicit Store(const ModelState& model);
  /// A copy of the values of another model with the same segments.
  Store(const ModelState& model, Store& from);

  /// The newest values on the host. After write() those are the newest, whatever devices have.
  const float* read(const graph::Segment& segment);
  float* write(const graph::Segment& segment);

  /// Where the values lie on a device: fixed, the host's own for one that computes there. The first call takes the
  /// memory of a copy.
  float* address(const backend::Backend& backend, const graph::Segment& segment);
  /// Sees to it that the device has the newest values; their version, which changes with each change.
  int64_t bring_to(const backend::Backend& backend);
  /// The device's values were changed, or will be by what it has queued: they are the newest. Returns their version.
  int64_t changed_on(const backend::Backend& backend);

  int64_t bytes() const { return parameters_.bytes() + buffers_.bytes(); }
  /// Held on the device.
  int64_t bytes_on(const backend::Backend& backend) const;

 private:
  struct Copy {
    const backend::Backend* backend;
    DeviceArena parameters, buffers;
    int64_t version = 0;
  };
  float* host(const graph::Segment& segment) const;
  Copy* copy_on(const backend::Backend& backend) const;
  void bring_to_host();

  Arena parameters_;
  Arena buffers_;
  mutable std::mutex mutex_;  // guards what follows
  int64_t newest_ = 1, host_version_ = 1;
  std::vector<std::unique_ptr<Copy>> copies_;
};

/// The model's store, made now if it was not; by one thread if several ask at once.
Store& store_of(ModelState& model);
/// Bytes of its values on the device; 0 while they are not made.
int64_t store_bytes(ModelState& model, const backend::Backend& backend);

/// Copies between the canonical order and PyTorch's layout (accumulating nothing).
void to_torch(const graph::ParameterSpec& spec, const float* canonical, float* torch);
void from_torch(const graph::ParameterSpec& spec, const float* torch, float* canonical);

}  // namespace brisk::exec
