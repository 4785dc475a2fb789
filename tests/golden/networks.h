// The networks and optimizers of make_golden.py, in Brisk's words.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "brisk/brisk.h"
#include "golden/golden_data.h"

namespace brisk::golden {

inline Var lenet(Var x) {
  x = max_pool2d(relu(conv2d(x, {.channels = 20, .kernel = 5})), {.kernel = 2});
  x = max_pool2d(relu(conv2d(x, {.channels = 50, .kernel = 5})), {.kernel = 2});
  return linear(relu(linear(flatten(x), 500)), 10);
}

inline Var conv_bn(Var x, int64_t channels, int64_t kernel, int64_t stride) {
  return batch_norm(
      conv2d(x, {.bias = false, .channels = channels, .kernel = kernel, .padding = kernel / 2, .stride = stride}));
}

inline Var block(Var x) {
  Scope scope("layer1.0");
  Var y = conv_bn(relu(conv_bn(x, 32, 3, 2)), 32, 3, 1);
  Scope inner("downsample", Naming::index);
  return relu(y + conv_bn(x, 32, 1, 2));
}

inline Var residual(Var x) { return linear(global_avg_pool2d(block(relu(conv_bn(x, 16, 3, 1)))), 10, {.name = "fc"}); }

// The options that make_golden.py gives PyTorch, which decays every parameter.
inline Optimizer optimizer(const std::string& kind) {
  if (kind == "sgd") {
    return sgd({.groups = {{.match = "*", .weight_decay = 5e-4}}, .learning_rate = 0.05, .momentum = 0.9});
  }
  return adamw({.groups = {{.match = "*", .weight_decay = 0.01}}, .learning_rate = 1e-3});
}

inline Shape shape_of(const std::vector<int64_t>& sizes) { return Shape(std::span<const int64_t>(sizes)); }

// The network with the trajectory's initial weights.
inline Model make_model(const Trajectories& all, const std::string& name, uint64_t seed) {
  const Network& network = all.networks.at(name);
  Model model([&](Var x) { return name == "lenet" ? lenet(x) : residual(x); }, shape_of(network.input));
  const std::vector<std::vector<float>> start = all.initial(name, seed);
  for (size_t i = 0; i < start.size(); ++i) {
    model.set_parameter(network.parameters[i].name, view(start[i], shape_of(network.parameters[i].shape)));
  }
  return model;
}

}  // namespace brisk::golden
