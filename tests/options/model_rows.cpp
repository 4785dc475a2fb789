// Numbers of the models.
#include "options/table.h"
#include "support/own_ops.h"

namespace brisk::test {
namespace {

constexpr int64_t kMost = int64_t{1} << 20;

/// A model of small images with one size set.
template <class Options>
Row row(const char* name, const char* field, int64_t Options::*size, ModelFunction (*make)(Options), Options small,
        Shape image, int64_t highest = kMost) {
  return whole(std::string("models::") + name + "." + field, 1, highest,
               [=](int64_t value) {
                 Options options = small;
                 options.*size = value;
                 Model(make(options), image);
               },
               {1, 3});
}

}  // namespace

std::vector<Row> model_rows() {
  using namespace models;
  const auto lenet_row = [](const char* field, int64_t LenetOptions::*size) {
    return row<LenetOptions>("LenetOptions", field, size, lenet, {.channels1 = 2, .channels2 = 2, .hidden = 2},
                             {1, 28, 28});
  };
  const auto resnet_cifar_row = [](const char* field, int64_t ResnetCifarOptions::*size) {
    return row<ResnetCifarOptions>("ResnetCifarOptions", field, size, resnet_cifar, {.channels = 1}, {1, 8, 8});
  };
  const auto small_row = [](const char* field, int64_t Resnet32x32Options::*size, auto make) {
    return row<Resnet32x32Options>("Resnet32x32Options", field, size, make, {.channels = 1}, {1, 8, 8});
  };
  const auto resnet_row = [](const char* field, int64_t ResnetOptions::*size) {
    return row<ResnetOptions>("ResnetOptions", field, size, resnet50, {.channels = 1, .classes = 2}, {3, 32, 32});
  };
  const auto unet_row = [](const char* field, int64_t UnetOptions::*size, int64_t highest) {
    return row<UnetOptions>("UnetOptions", field, size, unet, {.channels = 1, .depth = 1}, {1, 16, 16}, highest);
  };
  const auto autoencoder_row = [](const char* field, int64_t AutoencoderOptions::*size) {
    return row<AutoencoderOptions>("AutoencoderOptions", field, size, autoencoder, {.channels = 2, .features = 2},
                                   {1, 8, 8});
  };
  const auto mobile = [](auto set) {
    return [set](auto value) {
      MobilenetOptions options{.classes = 2, .width = 0.1};
      set(options, value);
      Model(mobilenet_v2(options), {3, 32, 32});
    };
  };
  const auto efficient = [](auto set) {
    return [set](auto value) {
      EfficientnetOptions options{.classes = 2, .width = 0.1};
      set(options, value);
      Model(efficientnet_b0(options), {3, 32, 32});
    };
  };
  const auto check = [](auto set) {
    return [set](auto value) {
      CheckGradientOptions options;
      set(options, value);
      check_gradient(LearntSwish{}, {{1, 2, 1, 1}, {2}}, options);
    };
  };
  const auto blend = [](double value) {
    const auto net = [](Var x) { return x * parameter("w", {2}); };
    Model(net, {2}).copy_weights_from(Model(net, {2}), {.blend = value});
  };
  return {
      real("CopyWeightsOptions.blend", kShare, blend),
      real("CheckGradientOptions.tolerance", kBetweenZeroAndOne,
           check([](CheckGradientOptions& o, double v) { o.tolerance = v; })),
      whole("CheckGradientOptions.elements", 1, INT64_MAX,
            check([](CheckGradientOptions& o, int64_t v) { o.elements = v; })),
      whole<int>("CheckGradientOptions.directions", 0, INT32_MAX,
                 check([](CheckGradientOptions& o, int v) { o.directions = v; }), {0, 3}),
      whole("models::MobilenetOptions.classes", 1, kMost, mobile([](auto& o, int64_t v) { o.classes = v; }), {1, 3}),
      real("models::MobilenetOptions.dropout", kShare, mobile([](auto& o, double v) { o.dropout = v; })),
      real("models::MobilenetOptions.width", {.low = 0, .high = 100, .low_open = true},
           mobile([](auto& o, double v) { o.width = v; }), {0.01, 0.2}),
      whole("models::EfficientnetOptions.classes", 1, kMost, efficient([](auto& o, int64_t v) { o.classes = v; }),
            {1, 3}),
      real("models::EfficientnetOptions.dropout", kShare, efficient([](auto& o, double v) { o.dropout = v; })),
      real("models::EfficientnetOptions.stochastic_depth", kShare,
           efficient([](auto& o, double v) { o.stochastic_depth = v; })),
      real("models::EfficientnetOptions.width", {.low = 0, .high = 100, .low_open = true},
           efficient([](auto& o, double v) { o.width = v; }), {0.01, 0.2}),
      lenet_row("channels1", &LenetOptions::channels1),
      lenet_row("channels2", &LenetOptions::channels2),
      lenet_row("classes", &LenetOptions::classes),
      lenet_row("hidden", &LenetOptions::hidden),
      lenet_row("kernel", &LenetOptions::kernel),
      whole("mlp.widths", 1, kMost,
            [](int64_t v) {
              Model(mlp({4, v, 2}), {3});
            },
            {1, 3}),
      resnet_cifar_row("blocks", &ResnetCifarOptions::blocks),
      resnet_cifar_row("channels", &ResnetCifarOptions::channels),
      resnet_cifar_row("classes", &ResnetCifarOptions::classes),
      small_row("channels", &Resnet32x32Options::channels, resnet9),
      small_row("classes", &Resnet32x32Options::classes, resnet9),
      small_row("channels", &Resnet32x32Options::channels, resnet18_cifar),
      small_row("classes", &Resnet32x32Options::classes, resnet34_cifar),
      resnet_row("channels", &ResnetOptions::channels),
      resnet_row("classes", &ResnetOptions::classes),
      unet_row("channels", &UnetOptions::channels, kMost),
      unet_row("classes", &UnetOptions::classes, kMost),
      unet_row("depth", &UnetOptions::depth, 16),
      autoencoder_row("channels", &AutoencoderOptions::channels),
      autoencoder_row("features", &AutoencoderOptions::features),
  };
}

}  // namespace brisk::test
