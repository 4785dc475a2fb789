// brisk/augment.h: changes to one image, and samples mixed, as functions of their Random: the same for any number of
// threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "brisk/data.h"
#include "brisk/export.h"

namespace brisk {

/// Images are [channels, height, width], f32 in [0, 1] or u8. All functions throw Error [data] for other shapes and
/// element types and Error [option] for numbers out of range. What each one draws from `random` does not depend on the
/// pixels, so one function more or less changes later draws only by where it stands.
namespace augment {

/// Cuts a random part of the size of `out` from `image` with `padding` zeros on each side: each place is equally
/// likely. The two have the same channels and element type, and do not overlap. Needs 0 <= padding and out's height and
/// width at most image's + 2 x padding.
BRISK_EXPORT void random_crop(const ConstView& image, View out, int64_t padding, Random& random);

/// Mirrors left and right with this probability.
BRISK_EXPORT void random_flip(View image, Random& random, double probability = 0.5);

/// Zeros in a square of `size` pixels, whose centre is any pixel; the part outside the image is cut off (T. DeVries,
/// G. Taylor, "Improved regularization of convolutional neural networks with cutout", 2017). Needs 1 <= size.
BRISK_EXPORT void cutout(View image, int64_t size, Random& random);

struct NormalizeOptions {
  std::vector<double> deviation{};  ///< of each channel, more than 0; one number stands for all
  std::vector<double> mean{};       ///< of each channel; one number stands for all
};
/// (x - mean) / deviation of each channel; f32 only.
BRISK_EXPORT void normalize(View image, const NormalizeOptions& options);

struct ColorJitterOptions {
  double brightness = 0;  ///< all values times a factor of [1 - brightness, 1 + brightness); 0 to 1
  double contrast = 0;    ///< distances from the image's mean grey times such a factor; 0 to 1
  double saturation = 0;  ///< distances from each pixel's grey times such a factor; 0 to 1; three channels only
};
/// Brightness, then contrast, then saturation, each cut to [0, 1] (0 to 255, rounded, for u8). Grey is 0.299 red +
/// 0.587 green + 0.114 blue (ITU-R BT.601); of any other number of channels, their mean.
BRISK_EXPORT void color_jitter(View image, const ColorJitterOptions& options, Random& random);

}  // namespace augment

/// A data set whose samples are changed after they have been read: Augmented(train, "input", [](View image, Random& r)
/// { augment::random_flip(image, r); }).
class BRISK_EXPORT Augmented : public Dataset {
 public:
  using Change = std::function<void(View sample, Random& random)>;
  /// The data set must outlive this one. `change` is called by several threads at once. Throws Error [data] when there
  /// is no such field.
  Augmented(const Dataset& dataset, std::string field, Change change);
  Augmented(const Dataset&& dataset, std::string field, Change change) = delete;
  int64_t size() const override { return dataset_.size(); }
  std::vector<Field> fields() const override { return dataset_.fields(); }
  void read(int64_t index, Sample& out, Random& random) const override;
  std::string name() const override { return dataset_.name(); }

 private:
  const Dataset& dataset_;
  const std::string field_;
  const Change change_;
};

struct MixupOptions {
  double alpha = 0.2;             ///< of the Beta(alpha, alpha) that the share comes from: small: close to 0 or 1
  int64_t classes = 0;            ///< required: how many there are
  std::string input = "input";    ///< the field that is mixed, f32 or u8 (rounded)
  std::string target = "target";  ///< the field of class numbers, i64 []
};

/// Each sample mixed with another one, as share x sample + (1 - share) x other, and its class with that one's (H. Zhang
/// et al., "mixup: Beyond empirical risk minimization", 2018). The other sample and the share are drawn from the
/// sample's Random, after it was read: pure functions of (seed, epoch, index). The target becomes f32 [classes], the
/// probability of each class, for a loss on soft targets; further fields are the sample's own.
class BRISK_EXPORT Mixup : public Dataset {
 public:
  /// The data set must outlive this one; it is read twice for each sample. Throws Error [option] for numbers out of
  /// range, Error [data] when a field is missing or of another type.
  explicit Mixup(const Dataset& dataset, MixupOptions options);
  explicit Mixup(const Dataset&& dataset, MixupOptions options) = delete;
  int64_t size() const override { return dataset_.size(); }
  std::vector<Field> fields() const override;
  /// Throws Error [data] for a class outside 0 .. classes - 1.
  void read(int64_t index, Sample& out, Random& random) const override;
  std::string name() const override { return dataset_.name(); }

 private:
  struct Rows;
  const Dataset& dataset_;
  const MixupOptions options_;
  const std::shared_ptr<Rows> rows_;  // where samples lie before they are mixed
};

}  // namespace brisk
