#include "exec/store.h"

#include <algorithm>

#include "core/philox.h"

namespace brisk::exec {
namespace {

void draw(const ModelState& model, const graph::ParameterSpec& spec, float* out, int64_t count) {
  if (!spec.values.empty()) {
    from_torch(spec, spec.values.data(), out);
    return;
  }
  const uint64_t key = mix(model.seed, hash_name(model.name + "/" + spec.name));
  for (int64_t i = 0; i < count; ++i) {
    const PhiloxBlock words =
        philox(key, philox_counter(0, static_cast<uint32_t>(i / 4 >> 32), static_cast<uint32_t>(i / 4)));
    const auto lane = static_cast<size_t>(i % 4);
    switch (spec.init.kind) {
      case Init::Kind::constant:
        out[i] = static_cast<float>(spec.init.value);
        break;
      case Init::Kind::uniform:
        out[i] = static_cast<float>((2.0 * uniform(words[lane]) - 1.0) * spec.init.value);
        break;
      case Init::Kind::normal:
        out[i] = static_cast<float>(normal(words[lane & ~size_t{1}], words[lane | 1])[lane & 1] * spec.init.value);
        break;
    }
  }
}

/// Visits (canonical index, torch index) of a convolution weight: O,H,W,I against O,I,H,W.
template <class F>
void each_convolution_index(const Shape& canonical, F&& visit) {
  const int64_t outputs = canonical[0], height = canonical[1], width = canonical[2], inputs = canonical[3];
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x)
        for (int64_t i = 0; i < inputs; ++i)
          visit(((o * height + y) * width + x) * inputs + i, ((o * inputs + i) * height + y) * width + x);
}

}  // namespace

Store::Store(const ModelState& model)
    : parameters_(model.parameter_floats * int64_t{sizeof(float)}, "parameters of model '" + model.name + "'"),
      buffers_(model.buffer_floats * int64_t{sizeof(float)}, "buffers of model '" + model.name + "'") {
  for (const graph::Segment& segment : model.segments) draw(model, segment.spec, host(segment), segment.count);
}

Store::Store(const ModelState& model, Store& from)
    : parameters_(from.parameters_.bytes(), "parameters of model '" + model.name + "'"),
      buffers_(from.buffers_.bytes(), "buffers of model '" + model.name + "'") {
  const std::lock_guard lock(from.mutex_);
  from.bring_to_host();
  const auto copy = [](const Arena& source, const Arena& target) {
    std::copy_n(source.data(), static_cast<size_t>(source.bytes()), target.data());
  };
  copy(from.parameters_, parameters_);
  copy(from.buffers_, buffers_);
}

float* Store::host(const graph::Segment& segment) const {
  return reinterpret_cast<float*>((segment.spec.buffer ? buffers_ : parameters_).data()) + segment.offset;
}

const float* Store::read(const graph::Segment& segment) {
  const std::lock_guard lock(mutex_);
  bring_to_host();
  return host(segment);
}

float* Store::write(const graph::Segment& segment) {
  const std::lock_guard lock(mutex_);
  bring_to_host();
  host_version_ = ++newest_;
  return host(segment);
}

Store::Copy* Store::copy_on(const backend::Backend& backend) const {
  const auto found =
      std::find_if(copies_.begin(), copies_.end(), [&](const auto& copy) { return copy->backend == &backend; });
  return found == copies_.end() ? nullptr : found->get();
}

float* Store::address(const backend::Backend& backend, const graph::Segment& segment) {
  if (backend.host_memory()) return host(segment);
  const std::lock_guard lock(mutex_);
  Copy* copy = copy_on(backend);
  if (!copy) {
    auto made = std::make_unique<Copy>();
    made->backend = &backend;
    made->parameters = DeviceArena(backend.memory(), parameters_.bytes(), "parameters");
    made->buffers = DeviceArena(backend.memory(), buffers_.bytes(), "buffers");
    copies_.push_back(std::move(made));
    copy = copies_.back().get();
  }
  return (segment.spec.buffer ? copy->buffers : copy->parameters).floats() + segment.offset;
}

void Store::bring_to_host() {
  if (host_version_ == newest_) return;
  const auto newest =
      std::find_if(copies_.begin(), copies_.end(), [&](const auto& copy) { return copy->version == newest_; });
  const Copy& copy = **newest;
  backend::Memory& memory = copy.backend->memory();
  if (parameters_.bytes() > 0) memory.read(parameters_.data(), copy.parameters.data(), parameters_.bytes());
  if (buffers_.bytes() > 0) memory.read(buffers_.data(), copy.buffers.data(), buffers_.bytes());
  host_version_ = newest_;
}

int64_t Store::bring_to(const backend::Backend& backend) {
  const std::lock_guard lock(mutex_);
  Copy* const copy = backend.host_memory() ? nullptr : copy_on(backend);
  if (copy && copy->version == newest_) return newest_;
  bring_to_host();
  if (!copy) return newest_;
  backend::Memory& memory = backend.memory();
  if (parameters_.bytes() > 0) memory.write(copy->parameters.data(), parameters_.data(), parameters_.bytes());
  if (buffers_.bytes() > 0) memory.write(copy->buffers.data(), buffers_.data(), buffers_.bytes());
  copy->version = newest_;
  return newest_;
}

int64_t Store::changed_on(const backend::Backend& backend) {
  const std::lock_guard lock(mutex_);
  ++newest_;
  Copy* const copy = backend.host_memory() ? nullptr : copy_on(backend);
  (copy ? copy->version : host_version_) = newest_;
  return newest_;
}

int64_t Store::bytes_on(const backend::Backend& backend) const {
  if (backend.host_memory()) return bytes();
  const std::lock_guard lock(mutex_);
  const Copy* const copy = copy_on(backend);
  return copy ? copy->parameters.bytes() + copy->buffers.bytes() : 0;
}

Store& store_of(ModelState& model) {
  const std::lock_guard lock(model.store_mutex);
  if (!model.store) model.store = std::make_shared<Store>(model);
  return *model.store;
}

int64_t store_bytes(ModelState& model, const backend::Backend& backend) {
  const std::lock_guard lock(model.store_mutex);
  return model.store ? model.store->bytes_on(backend) : 0;
}

void to_torch(const graph::ParameterSpec& spec, const float* canonical, float* torch) {
  if (spec.torch == graph::TorchLayout::same)
    std::copy_n(canonical, spec.shape.count(), torch);
  else
    each_convolution_index(spec.shape, [&](int64_t c, int64_t t) { torch[t] = canonical[c]; });
}

void from_torch(const graph::ParameterSpec& spec, const float* torch, float* canonical) {
  if (spec.torch == graph::TorchLayout::same)
    std::copy_n(torch, spec.shape.count(), canonical);
  else
    each_convolution_index(spec.shape, [&](int64_t c, int64_t t) { canonical[c] = torch[t]; });
}

}  // namespace brisk::exec
