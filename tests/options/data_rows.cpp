// Numbers of data sets, loaders, augmentation and images.
#include "options/table.h"

namespace brisk::test {
namespace {

InMemoryDataset samples(int64_t count) {
  InMemoryDataset out;
  out.add("input", Tensor(Shape{count, 2}));
  out.add("target", Tensor(Shape{count}, DType::i64));
  return out;
}

void load(LoaderOptions options) {
  const InMemoryDataset data = samples(4);
  Loader(data, options).next();
}

void mix(MixupOptions options) {
  const InMemoryDataset data = samples(4);
  Mixup(data, std::move(options));
}

/// Changes one image of 3 x 4 x 4.
void change(const std::function<void(View, Random&)>& f) {
  Tensor image(Shape{3, 4, 4});
  Random random(0, 0, 0);
  f(image, random);
}

/// No folder is there: what is accepted fails at the file.
void list(const std::function<void(ImageOptions&)>& set) {
  ImageOptions options;
  set(options);
  try {
    data::image_folder("no such folder", options);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::file) throw;
  }
}

}  // namespace

std::vector<Row> data_rows() {
  constexpr int64_t kSide = 65536;
  const auto jitter = [](augment::ColorJitterOptions options) {
    change([&](View image, Random& random) { augment::color_jitter(image, options, random); });
  };
  const auto standardize = [](double deviation, double mean) {
    change([&](View image, Random&) { augment::normalize(image, {.deviation = {deviation}, .mean = {mean}}); });
  };
  return {
      whole("LoaderOptions.batch", 1, INT64_MAX, [](int64_t v) { load({.batch = v}); }),
      whole("LoaderOptions.prefetch", 0, 1 << 20, [](int64_t v) { load({.prefetch = v}); }),
      whole("LoaderOptions.workers", 0, 1024, [](int64_t v) { load({.workers = v}); }, {0, 3}),
      real("SplitOptions.first", kBetweenZeroAndOne, [](double v) { samples(10).split({.first = v}); }, {0.1, 0.9}),
      real("MixupOptions.alpha", {.low = 0, .low_open = true}, [](double v) { mix({.alpha = v, .classes = 2}); }),
      whole("MixupOptions.classes", 1, INT32_MAX, [](int64_t v) { mix({.classes = v}); }),
      whole("drawn_digits.count", 1, INT32_MAX, [](int64_t v) { data::drawn_digits(v); }, {1, 3}),
      real("augment::ColorJitterOptions.brightness", kShare, [=](double v) { jitter({.brightness = v}); }),
      real("augment::ColorJitterOptions.contrast", kShare, [=](double v) { jitter({.contrast = v}); }),
      real("augment::ColorJitterOptions.saturation", kShare, [=](double v) { jitter({.saturation = v}); }),
      real("augment::NormalizeOptions.deviation", {.low = 0, .low_open = true}, [=](double v) { standardize(v, 0); }),
      real("augment::NormalizeOptions.mean", {}, [=](double v) { standardize(1, v); }),
      real("random_flip.probability", kShare,
           [](double v) { change([&](View image, Random& random) { augment::random_flip(image, random, v); }); }),
      whole("random_crop.padding", 0, INT32_MAX,
            [](int64_t v) {
              Tensor out(Shape{3, 4, 4});
              change([&](View image, Random& random) { augment::random_crop(image, out, v, random); });
            }),
      whole("cutout.size", 1, INT64_MAX,
            [](int64_t v) { change([&](View image, Random& random) { augment::cutout(image, v, random); }); }),
      real("ImageOptions.corrupt_limit", kShare, [](double v) { list([&](ImageOptions& o) { o.corrupt_limit = v; }); }),
      real("ImageOptions.flip", kShare, [](double v) { list([&](ImageOptions& o) { o.flip = v; }); }),
      whole("ImageOptions.most_pixels", 1, int64_t{1} << 32,
            [](int64_t v) { list([&](ImageOptions& o) { o.most_pixels = v; }); }),
      whole("ImageOptions.resize", 224, 2 * kSide, [](int64_t v) { list([&](ImageOptions& o) { o.resize = v; }); },
            {0, 224, 2 * kSide}),
      whole("ImageOptions.size", 1, kSide, [](int64_t v) { list([&](ImageOptions& o) { o.size = v; }); }),
      real("ImageOptions.smallest_area", {.low = 0, .high = 1, .low_open = true},
           [](double v) { list([&](ImageOptions& o) { o.smallest_area = v; }); }),
      real("ImageOptions.widest_ratio", {.low = 1, .high = 1000},
           [](double v) { list([&](ImageOptions& o) { o.widest_ratio = v; }); }),
  };
}

}  // namespace brisk::test
