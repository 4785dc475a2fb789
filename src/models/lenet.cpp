// LeNet and multi-layer perceptrons.
#include "brisk/models.h"
#include "brisk/ops/conv.h"
#include "brisk/ops/elementwise.h"
#include "brisk/ops/linear.h"
#include "brisk/ops/pool.h"
#include "brisk/ops/shape.h"
#include "models/sizes.h"

namespace brisk::models {

ModelFunction lenet(LenetOptions options) {
  check_sizes("LenetOptions", {{"channels1", options.channels1},
                               {"channels2", options.channels2},
                               {"classes", options.classes},
                               {"hidden", options.hidden},
                               {"kernel", options.kernel}});
  return [options](Var x) {
    x = max_pool2d(relu(conv2d(x, {.channels = options.channels1, .kernel = options.kernel})), {.kernel = 2});
    x = max_pool2d(relu(conv2d(x, {.channels = options.channels2, .kernel = options.kernel})), {.kernel = 2});
    return linear(relu(linear(flatten(x), options.hidden)), options.classes);
  };
}

ModelFunction mlp(std::vector<int64_t> widths) {
  if (widths.empty()) throw Error(ErrorCode::option, "models::mlp", "needs at least one width, the output's");
  for (const int64_t width : widths) check_sizes("models::mlp", {{"widths", width}});
  return [widths](Var x) {
    if (x.rank() != 2) x = flatten(x);
    for (size_t i = 0; i + 1 < widths.size(); ++i) x = relu(linear(x, widths[i]));
    return linear(x, widths.back());
  };
}

}  // namespace brisk::models
