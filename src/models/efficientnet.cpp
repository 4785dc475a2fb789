// EfficientNet with torchvision's names.
#include <algorithm>
#include <cmath>
#include <string>

#include "brisk/models.h"
#include "brisk/ops/conv.h"
#include "brisk/ops/elementwise.h"
#include "brisk/ops/linear.h"
#include "brisk/ops/norm.h"
#include "brisk/ops/pool.h"
#include "brisk/ops/random.h"
#include "brisk/ops/reduce.h"
#include "models/mobile_blocks.h"
#include "models/sizes.h"

namespace brisk::models {
namespace {

/// A variant: B0's stages with widths and numbers of blocks multiplied.
struct Scaling {
  double width, depth, dropout;
};

struct Stage {
  int64_t expansion, kernel, stride, in, channels, blocks;
};
constexpr Stage kStages[] = {{1, 3, 1, 32, 16, 1},  {6, 3, 2, 16, 24, 2},   {6, 5, 2, 24, 40, 2},  {6, 3, 2, 40, 80, 3},
                             {6, 5, 1, 80, 112, 3}, {6, 5, 2, 112, 192, 4}, {6, 3, 1, 192, 320, 1}};

int64_t block_count(const Stage& stage, double depth) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(stage.blocks) * depth));
}

/// Scales each channel by what the means of all channels say (Hu et al. 2017).
Var squeeze_excite(Var x, const std::string& name, int64_t squeezed) {
  Scope scope(name);
  Var s = reduce_mean(x, {.axes = {2, 3}, .keep = true});
  s = silu(conv2d(s, {.channels = squeezed, .kernel = 1, .name = "fc1"}));
  s = sigmoid(conv2d(s, {.channels = x.dim(1), .kernel = 1, .name = "fc2"}));
  return x * s;
}

/// Expand, convolve each channel alone, squeeze and excite, project; x is added where the sizes allow.
Var block(Var x, const Stage& stage, int64_t channels, int64_t stride, double drop) {
  Scope scope("block");
  const int64_t in = x.dim(1), hidden = divisible(static_cast<double>(in * stage.expansion));
  int64_t child = 0;
  const auto next = [&] { return std::to_string(child++); };
  Var y = x;
  if (hidden != in) y = silu(conv_bn(y, next(), hidden, 1, 1));
  y = silu(conv_bn(y, next(), hidden, stage.kernel, stride, hidden));
  y = squeeze_excite(y, next(), std::max<int64_t>(1, in / 4));
  y = conv_bn(y, next(), channels, 1, 1);
  return stride == 1 && in == channels ? x + stochastic_depth(y, drop) : y;
}

ModelFunction efficientnet(Scaling scaling, EfficientnetOptions options) {
  check_width("EfficientnetOptions.width", options.width);
  scaling.width *= options.width;
  check_sizes("EfficientnetOptions", {{"classes", options.classes}});
  if (options.dropout) check_share("EfficientnetOptions.dropout", *options.dropout);
  check_share("EfficientnetOptions.stochastic_depth", options.stochastic_depth);
  scaling.dropout = options.dropout.value_or(scaling.dropout);
  return [scaling, options](Var x) {
    const auto wide = [&](int64_t channels) { return divisible(static_cast<double>(channels) * scaling.width); };
    int64_t all = 0, block_number = 0, stage_number = 0;
    for (const Stage& stage : kStages) all += block_count(stage, scaling.depth);
    x = silu(conv_bn(x, "features.0", wide(kStages[0].in), 3, 2));
    for (const Stage& stage : kStages) {
      ++stage_number;
      for (int64_t i = 0; i < block_count(stage, scaling.depth); ++i, ++block_number) {
        Scope scope("features." + std::to_string(stage_number) + "." + std::to_string(i));
        const double drop = options.stochastic_depth * static_cast<double>(block_number) / static_cast<double>(all);
        x = block(x, stage, wide(stage.channels), i == 0 ? stage.stride : 1, drop);
      }
    }
    x = silu(conv_bn(x, "features.8", 4 * x.dim(1), 1, 1));
    x = dropout(global_avg_pool2d(x), scaling.dropout, {.name = "classifier.0"});
    return linear(x, options.classes, {.name = "classifier.1"});
  };
}

}  // namespace

ModelFunction efficientnet_b0(EfficientnetOptions options) { return efficientnet({1.0, 1.0, 0.2}, options); }
ModelFunction efficientnet_b1(EfficientnetOptions options) { return efficientnet({1.0, 1.1, 0.2}, options); }
ModelFunction efficientnet_b2(EfficientnetOptions options) { return efficientnet({1.1, 1.2, 0.3}, options); }
ModelFunction efficientnet_b3(EfficientnetOptions options) { return efficientnet({1.2, 1.4, 0.3}, options); }
ModelFunction efficientnet_b4(EfficientnetOptions options) { return efficientnet({1.4, 1.8, 0.4}, options); }

}  // namespace brisk::models
