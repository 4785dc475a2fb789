#include "support/networks.h"

#include <cstring>

#include "core/philox.h"

namespace brisk::test {

Var lenet(Var x) {
  x = max_pool2d(relu(conv2d(x, {.channels = 20, .kernel = 5})), {.kernel = 2});
  x = max_pool2d(relu(conv2d(x, {.channels = 50, .kernel = 5})), {.kernel = 2});
  return linear(relu(linear(flatten(x), 500)), 10);
}

Var residual_net(Var x) {
  x = relu(batch_norm(conv2d(x, {.bias = false, .channels = 16, .kernel = 3, .padding = 1})));
  Var y = relu(batch_norm(conv2d(x, {.bias = false, .channels = 32, .kernel = 3, .padding = 1, .stride = 2})));
  y = batch_norm(conv2d(y, {.bias = false, .channels = 32, .kernel = 3, .padding = 1}));
  x = batch_norm(conv2d(x, {.bias = false, .channels = 32, .kernel = 1, .stride = 2}));
  x = dropout(global_avg_pool2d(relu(y + x)), 0.2);
  return linear(x, 10);
}

ConstView Rows::inputs(int64_t first, int64_t count) const { return ConstView(input.data(), shape).rows(first, count); }
ConstView Rows::labels(int64_t first, int64_t count) const {
  return ConstView(label.data(), {static_cast<int64_t>(label.size())}).rows(first, count);
}

Rows make_rows(int64_t rows, Shape sample, int64_t classes, uint64_t seed) {
  Rows made;
  made.shape.append(rows);
  for (const int64_t size : sample) made.shape.append(size);
  const int64_t elements = sample.count();
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < elements; ++i) {
      const auto words = philox(mix(seed, 1), philox_counter(0, static_cast<uint32_t>(row), static_cast<uint32_t>(i)));
      made.input.push_back(2 * uniform(words[0]) - 1);
    }
    made.label.push_back(static_cast<int64_t>(
        philox(mix(seed, 2), philox_counter(0, static_cast<uint32_t>(row), 0))[0] % static_cast<uint64_t>(classes)));
  }
  return made;
}

uint64_t hash_of(const Model& model) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const Parameter& parameter : model.parameters()) {
    const Tensor value = model.parameter(parameter.name);
    for (int64_t i = 0; i < value.count(); ++i) {
      uint32_t bits;
      std::memcpy(&bits, value.data<float>() + i, sizeof bits);
      hash = (hash ^ bits) * 0x100000001B3;
    }
  }
  return hash;
}

}  // namespace brisk::test
