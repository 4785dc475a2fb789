// Networks that make an image of an image: U-Net and a convolutional autoencoder.
#include <string>
#include <vector>

#include "brisk/models.h"
#include "brisk/ops/conv.h"
#include "brisk/ops/elementwise.h"
#include "brisk/ops/linear.h"
#include "brisk/ops/norm.h"
#include "brisk/ops/pool.h"
#include "brisk/ops/shape.h"
#include "models/sizes.h"

namespace brisk::models {
namespace {

void check_size(const char* model, const Var& x, int64_t multiple) {
  if (x.rank() == 4 && x.dim(2) % multiple == 0 && x.dim(3) % multiple == 0) return;
  throw Error(ErrorCode::shape, model,
              "input must be [N, channels, height, width] with sizes that are multiples of " +
                  std::to_string(multiple) + ", got " + x.text() + "; pad or resize the images");
}

Var convolutions(Var x, int64_t channels) {
  for (int i = 0; i < 2; ++i) {
    x = relu(batch_norm(conv2d(x, {.bias = false, .channels = channels, .kernel = 3, .padding = 1})));
  }
  return x;
}

}  // namespace

ModelFunction unet(UnetOptions options) {
  check_sizes("UnetOptions", {{"channels", options.channels}, {"classes", options.classes}});
  if (options.depth < 1 || options.depth > 16) {
    throw Error(ErrorCode::option, "UnetOptions.depth = " + std::to_string(options.depth), "must be between 1 and 16");
  }
  return [options](Var x) {
    check_size("models::unet", x, int64_t{1} << options.depth);
    std::vector<Var> levels;
    for (int64_t level = 0; level < options.depth; ++level) {
      Scope scope("down" + std::to_string(level + 1));
      levels.push_back(convolutions(x, options.channels << level));
      x = max_pool2d(levels.back(), {.kernel = 2});
    }
    {
      Scope scope("bottom");
      x = convolutions(x, options.channels << options.depth);
    }
    for (int64_t level = options.depth - 1; level >= 0; --level) {
      Scope scope("up" + std::to_string(level + 1));
      const int64_t channels = options.channels << level;
      x = conv_transpose2d(x, {.channels = channels, .kernel = 2, .name = "upsample", .stride = 2});
      x = convolutions(concat({levels[static_cast<size_t>(level)], x}), channels);
    }
    return conv2d(x, {.channels = options.classes, .kernel = 1});
  };
}

Var autoencoder_features(Var x, AutoencoderOptions options) {
  check_sizes("AutoencoderOptions", {{"channels", options.channels}, {"features", options.features}});
  check_size("models::autoencoder", x, 4);
  Scope scope("encoder");
  for (const int64_t channels : {options.channels, 2 * options.channels}) {
    x = relu(conv2d(x, {.channels = channels, .kernel = 3, .padding = 1, .stride = 2}));
  }
  return linear(flatten(x), options.features);
}

ModelFunction autoencoder(AutoencoderOptions options) {
  return [options](Var x) {
    Var y = autoencoder_features(x, options);
    const int64_t channels = 2 * options.channels, height = x.dim(2) / 4, width = x.dim(3) / 4;
    Scope scope("decoder");
    y = reshape(relu(linear(y, channels * height * width)), {-1, channels, height, width});
    y = relu(conv_transpose2d(
        y, {.channels = options.channels, .kernel = 4, .name = "upsample1", .padding = 1, .stride = 2}));
    return conv_transpose2d(y, {.channels = x.dim(1), .kernel = 4, .name = "upsample2", .padding = 1, .stride = 2});
  };
}

}  // namespace brisk::models
