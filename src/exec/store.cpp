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
  for (const graph::Segment& segment : model.segments) draw(model, segment.spec, data(segment), segment.count);
}

Store::Store(const ModelState& model, const Store& from)
    : parameters_(from.parameters_.bytes(), "parameters of model '" + model.name + "'"),
      buffers_(from.buffers_.bytes(), "buffers of model '" + model.name + "'") {
  const auto copy = [](const Arena& source, const Arena& target) {
    std::copy_n(source.data(), static_cast<size_t>(source.bytes()), target.data());
  };
  copy(from.parameters_, parameters_);
  copy(from.buffers_, buffers_);
}

Store& store_of(ModelState& model) {
  const std::lock_guard lock(model.store_mutex);
  if (!model.store) model.store = std::make_shared<Store>(model);
  return *model.store;
}

int64_t store_bytes(ModelState& model) {
  const std::lock_guard lock(model.store_mutex);
  return model.store ? model.store->parameter_bytes() + model.store->buffer_bytes() : 0;
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
