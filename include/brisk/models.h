// brisk/models.h: well-known networks as model functions, written with the public operations alone.
#pragma once

#include <cstdint>
#include <vector>

#include "brisk/model.h"

namespace brisk::models {

struct LenetOptions {
  int64_t channels1 = 20;  ///< of the first convolution
  int64_t channels2 = 50;  ///< of the second
  int64_t classes = 10;
  int64_t hidden = 500;  ///< features of the first fully connected layer
  int64_t kernel = 5;    ///< height and width of both convolutions' windows
};
/// Two times convolution, relu, 2x2 max-pool; then linear, relu, linear (after LeCun et al. 1998, with relu and
/// max-pool in the place of their forerunners). x: [N, channels, height, width]. Returns logits [N, classes]. Throws
/// Error [option] for a size below 1 when the model is made.
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

}  // namespace brisk::models
