// MobileNetV2 with torchvision's names.
#include <cmath>
#include <string>

#include "brisk/models.h"
#include "brisk/ops/conv.h"
#include "brisk/ops/elementwise.h"
#include "brisk/ops/linear.h"
#include "brisk/ops/norm.h"
#include "brisk/ops/pool.h"
#include "brisk/ops/random.h"
#include "models/mobile_blocks.h"
#include "models/sizes.h"

namespace brisk::models {
namespace {

Var relu6(Var x) { return clamp(x, 0, 6); }

/// Expand, convolve each channel alone, project; x is added where the sizes allow.
Var inverted_residual(Var x, int64_t channels, int64_t stride, int64_t expansion) {
  Scope scope("conv");
  const int64_t in = x.dim(1), hidden = in * expansion;
  int64_t child = 0;
  const auto next = [&] { return std::to_string(child++); };
  Var y = x;
  if (expansion != 1) y = relu6(conv_bn(y, next(), hidden, 1, 1));
  y = relu6(conv_bn(y, next(), hidden, 3, stride, hidden));
  y = conv2d(y, {.bias = false, .channels = channels, .kernel = 1, .name = next()});
  y = batch_norm(y, {.name = next()});
  return stride == 1 && in == channels ? x + y : y;
}

struct Stage {
  int64_t expansion, channels, blocks, stride;
};
constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                             {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

}  // namespace

ModelFunction mobilenet_v2(MobilenetOptions options) {
  constexpr double kStem = 32, kLast = 1280;
  check_width("MobilenetOptions.width", options.width);
  check_sizes("MobilenetOptions", {{"classes", options.classes}});
  check_share("MobilenetOptions.dropout", options.dropout);
  return [options](Var x) {
    int64_t child = 0;
    const auto next = [&] { return "features." + std::to_string(child++); };
    x = relu6(conv_bn(x, next(), divisible(kStem * options.width), 3, 2));
    for (const Stage& stage : kStages) {
      const int64_t channels = divisible(static_cast<double>(stage.channels) * options.width);
      for (int64_t i = 0; i < stage.blocks; ++i) {
        Scope scope(next());
        x = inverted_residual(x, channels, i == 0 ? stage.stride : 1, stage.expansion);
      }
    }
    x = relu6(conv_bn(x, next(), divisible(kLast * std::fmax(1.0, options.width)), 1, 1));
    x = dropout(global_avg_pool2d(x), options.dropout, {.name = "classifier.0"});
    return linear(x, options.classes, {.name = "classifier.1"});
  };
}

}  // namespace brisk::models
