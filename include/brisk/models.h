// brisk/models.h: well-known networks as model functions, written with the public operations alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "brisk/model.h"

namespace brisk::models {

// Sizes are 1 to 2^20: Error [option] when the function is made, or when it is called as a part of another one.
struct LenetOptions {
  int64_t channels1 = 20;  ///< of the first convolution
  int64_t channels2 = 50;  ///< of the second
  int64_t classes = 10;
  int64_t hidden = 500;  ///< features of the first fully connected layer
  int64_t kernel = 5;    ///< height and width of both convolutions' windows
};
/// Two times convolution, relu, 2x2 max-pool; then linear, relu, linear (after LeCun et al. 1998, with relu and
/// max-pool in the place of their forerunners). x: [N, channels, height, width]. Returns logits [N, classes].
BRISK_EXPORT ModelFunction lenet(LenetOptions options = {});

/// Linear layers with relu between them; widths: features of each layer, the last one the output's. x: [N, ...],
/// flattened. Returns [N, widths.back()]. Throws Error [option] when there is no width.
BRISK_EXPORT ModelFunction mlp(std::vector<int64_t> widths);

struct ResnetCifarOptions {
  int64_t blocks = 1;     ///< of each of the three stages; layers: 6 blocks + 2
  int64_t channels = 16;  ///< of the first stage; each further one has twice as many, at half the size
  int64_t classes = 10;
};
/// The residual network for small images (He et al. 2015, section 4.2): 8 layers with one block a stage.
/// x: [N, channels, height, width]. Returns logits [N, classes].
BRISK_EXPORT ModelFunction resnet_cifar(ResnetCifarOptions options = {});

struct Resnet32x32Options {
  int64_t channels = 64;  ///< of the first stage; each further one has twice as many
  int64_t classes = 10;
};
/// Nine layers for short training runs on 32x32 images, after David Page's "How to Train Your ResNet" (2018): 3x3
/// convolutions to 1, 2, 4 and 8 times the channels, with a 2x2 max-pool after each but the first and residual pairs
/// after the second and the fourth; then the maximum over the image, and logits without bias times 1/8. All
/// convolutions are followed by batch norm and relu. x: [N, in, height, width], sizes of at least 8. Returns logits [N,
/// classes].
BRISK_EXPORT ModelFunction resnet9(Resnet32x32Options options = {});
/// The form of resnet18 and resnet34 for images of about 32x32: the stem is one 3x3 convolution of stride 1, without
/// max-pool. x: [N, in, height, width]. Returns logits [N, classes].
BRISK_EXPORT ModelFunction resnet18_cifar(Resnet32x32Options options = {});
BRISK_EXPORT ModelFunction resnet34_cifar(Resnet32x32Options options = {});

struct ResnetOptions {
  int64_t channels = 64;  ///< base width: of the stem and the first stage; each further stage has twice as many
  int64_t classes = 1000;
};
/// Residual networks for images of about 224x224 (He et al. 2015) with torchvision's names and shapes, so that its
/// weight files fit: a stem of one 7x7 convolution and a max-pool, four stages, the mean over the image, a linear layer
/// "fc". resnet18 and resnet34 have basic blocks, resnet50 and resnet101 bottlenecks with four times the width at their
/// output and the stride on the 3x3 convolution (torchvision's "v1.5"). Convolutions and the last layer begin as conv2d
/// and linear say, uniform by fan-in; torchvision draws those of convolutions normal by fan-out. x: [N, in, height,
/// width], any size. Returns logits [N, classes].
BRISK_EXPORT ModelFunction resnet18(ResnetOptions options = {});
BRISK_EXPORT ModelFunction resnet34(ResnetOptions options = {});
BRISK_EXPORT ModelFunction resnet50(ResnetOptions options = {});
BRISK_EXPORT ModelFunction resnet101(ResnetOptions options = {});
/// resnet18 without its last layer, to be called inside a model function. x: [N, in, height, width]. Returns [N, 512].
BRISK_EXPORT Var resnet18_features(Var x);

struct MobilenetOptions {
  int64_t classes = 1000;
  double dropout = 0.2;  ///< before the last layer
  double width = 1;      ///< multiplies all channels, which are then rounded to multiples of 8; more than 0
};
/// MobileNetV2 (Sandler et al. 2018): inverted residual blocks around depthwise 3x3 convolutions, relu6. torchvision's
/// names and shapes; what is said of resnet18's initial values holds here too. x: [N, in, height, width], any size,
/// made for 224x224. Returns logits [N, classes]. Throws Error [option] for a width that is not positive.
BRISK_EXPORT ModelFunction mobilenet_v2(MobilenetOptions options = {});

struct EfficientnetOptions {
  int64_t classes = 1000;
  std::optional<double> dropout{};  ///< before the last layer; not set: 0.2 (B0, B1), 0.3 or 0.4 (B4)
  double stochastic_depth = 0.2;    ///< rate that the last block nearly has; block i of n has i / n of it
  double width = 1;  ///< multiplies the variant's channels, which are then rounded to multiples of 8; more than 0
};
/// EfficientNet (Tan and Le 2019): MobileNetV2's blocks with squeeze-and-excitation, silu and stochastic depth; B1 to
/// B4 have more blocks and channels than B0. torchvision's names and shapes; what is said of resnet18's initial values
/// holds here too. x: [N, in, height, width], any size, made for 224x224 (B0), 240, 260, 300 and 380 (B4). Returns
/// logits [N, classes]. Throws Error [option] for a width that is not positive.
BRISK_EXPORT ModelFunction efficientnet_b0(EfficientnetOptions options = {});
BRISK_EXPORT ModelFunction efficientnet_b1(EfficientnetOptions options = {});
BRISK_EXPORT ModelFunction efficientnet_b2(EfficientnetOptions options = {});
BRISK_EXPORT ModelFunction efficientnet_b3(EfficientnetOptions options = {});
BRISK_EXPORT ModelFunction efficientnet_b4(EfficientnetOptions options = {});

struct UnetOptions {
  int64_t channels = 64;  ///< of the first level; each further one has twice as many
  int64_t classes = 2;    ///< channels of the output
  int64_t depth = 4;      ///< times that the image is halved; at least 1
};
/// Segmentation of images (Ronneberger et al. 2015, "U-Net"), with padded convolutions, each followed by batch norm and
/// relu, so that sizes stay: on the way down two of them and a 2x2 max-pool a level, on the way up a transposed
/// convolution, the values of the same level, and two convolutions. x: [N, in, height, width], sizes multiples of
/// 2^depth. Returns logits [N, classes, height, width]. Throws Error [shape] for other sizes.
BRISK_EXPORT ModelFunction unet(UnetOptions options = {});

struct AutoencoderOptions {
  int64_t channels = 32;  ///< of the first convolution; the second one has twice as many
  int64_t features = 32;  ///< numbers that an image is squeezed into
};
/// Convolutions of stride 2 and a linear layer to `features` numbers, and the way back with transposed convolutions;
/// train it with mse() to give back what it is given. x: [N, in, height, width], sizes multiples of 4. Returns x's
/// shape. Throws Error [shape] for other sizes.
BRISK_EXPORT ModelFunction autoencoder(AutoencoderOptions options = {});
/// Its first half, to be called inside a model function. Returns [N, features].
BRISK_EXPORT Var autoencoder_features(Var x, AutoencoderOptions options = {});

}  // namespace brisk::models
