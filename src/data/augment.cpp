// Changes to one image.
#include "brisk/augment.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/text.h"
#include "data/fields.h"

namespace brisk {
namespace {

struct Size {
  int64_t channels, height, width;
  int64_t area() const { return height * width; }
};

Size size_of_image(const char* function, const ConstView& image) {
  if (image.shape().rank() != 3 || image.count() == 0) {
    throw Error(ErrorCode::data, function,
                cat("an image is [channels, height, width], each at least 1; this is ", image.shape()));
  }
  if (image.dtype() != DType::f32 && image.dtype() != DType::u8) {
    throw Error(ErrorCode::data, function, cat("an image is f32 or u8; this is ", name(image.dtype())));
  }
  return {image.dim(0), image.dim(1), image.dim(2)};
}

// Calls use(pointer to the elements) with their type.
template <class Use>
void with_elements(View image, const Use& use) {
  if (image.dtype() == DType::u8) {
    use(image.data<uint8_t>());
  } else {
    use(image.data<float>());
  }
}

void check_range(const char* option, double value) {
  if (!(value >= 0 && value <= 1)) {
    throw Error(ErrorCode::option, cat(option, " = ", value), "must be 0 to 1");
  }
}

// Values of [0, most], cut and, for bytes, rounded.
template <class T>
T cut(float value) {
  if constexpr (std::is_same_v<T, uint8_t>) {
    return static_cast<uint8_t>(std::lround(std::clamp(value, 0.0f, 255.0f)));
  } else {
    return std::clamp(value, 0.0f, 1.0f);
  }
}

template <class T>
float grey(const T* x, const Size& size, int64_t pixel) {
  const int64_t area = size.area();
  if (size.channels == 3) {
    return 0.299f * static_cast<float>(x[pixel]) + 0.587f * static_cast<float>(x[area + pixel]) +
           0.114f * static_cast<float>(x[2 * area + pixel]);
  }
  float sum = 0;
  for (int64_t c = 0; c < size.channels; ++c) sum += static_cast<float>(x[c * area + pixel]);
  return sum / static_cast<float>(size.channels);
}

template <class T>
float mean_grey(const T* x, const Size& size) {
  double sum = 0;
  for (int64_t pixel = 0; pixel < size.area(); ++pixel) sum += static_cast<double>(grey(x, size, pixel));
  return static_cast<float>(sum / static_cast<double>(size.area()));
}

template <class T>
void jitter(T* x, const Size& size, float brightness, float contrast, float saturation) {
  const int64_t count = size.channels * size.area();
  if (brightness != 1) {
    for (int64_t i = 0; i < count; ++i) x[i] = cut<T>(static_cast<float>(x[i]) * brightness);
  }
  if (contrast != 1) {
    const float middle = mean_grey(x, size);
    for (int64_t i = 0; i < count; ++i) x[i] = cut<T>(middle + (static_cast<float>(x[i]) - middle) * contrast);
  }
  if (saturation != 1) {
    for (int64_t pixel = 0; pixel < size.area(); ++pixel) {
      const float middle = grey(x, size, pixel);
      for (int64_t i = pixel; i < count; i += size.area()) {
        x[i] = cut<T>(middle + (static_cast<float>(x[i]) - middle) * saturation);
      }
    }
  }
}

std::vector<double> each_channel(const char* option, const std::vector<double>& values, int64_t channels) {
  if (values.size() == 1) return std::vector<double>(static_cast<size_t>(channels), values[0]);
  if (static_cast<int64_t>(values.size()) == channels) return values;
  throw Error(ErrorCode::option, option,
              cat("has ", values.size(), " numbers; the image has ", channels, " channels; one number stands for all"));
}

}  // namespace

void augment::random_crop(const ConstView& image, View out, int64_t padding, Random& random) {
  const Size from = size_of_image("random_crop", image);
  const Size to = size_of_image("random_crop", out);
  if (padding < 0 || padding > INT32_MAX) {
    throw Error(ErrorCode::option, cat("padding = ", padding), "must be 0 or a number of pixels");
  }
  const int64_t places_y = from.height + 2 * padding - to.height + 1;
  const int64_t places_x = from.width + 2 * padding - to.width + 1;
  if (to.channels != from.channels || out.dtype() != image.dtype() || places_y < 1 || places_x < 1) {
    throw Error(ErrorCode::data, "random_crop",
                cat("no ", name(out.dtype()), " ", out.shape(), " is in a ", name(image.dtype()), " ", image.shape(),
                    " with padding ", padding));
  }
  const int64_t top = random.integer(places_y) - padding;
  const int64_t left = random.integer(places_x) - padding;
  const int64_t bytes = brisk::size_of(image.dtype());
  const int64_t first = std::clamp<int64_t>(-left, 0, to.width);  // columns of `out` that lie in the image
  const int64_t last = std::clamp<int64_t>(from.width - left, first, to.width);
  const auto* source = static_cast<const std::byte*>(image.raw());
  auto* target = static_cast<std::byte*>(out.raw());
  std::memset(target, 0, static_cast<size_t>(out.count() * bytes));
  for (int64_t c = 0; c < to.channels; ++c) {
    for (int64_t y = std::max<int64_t>(-top, 0); y < std::min(to.height, from.height - top) && first < last; ++y) {
      const int64_t read = (c * from.height + top + y) * from.width + left + first;
      const int64_t write = (c * to.height + y) * to.width + first;
      std::memcpy(target + write * bytes, source + read * bytes, static_cast<size_t>((last - first) * bytes));
    }
  }
}

void augment::random_flip(View image, Random& random, double probability) {
  const Size size = size_of_image("random_flip", image);
  check_range("probability", probability);
  if (!random.chance(probability)) return;
  with_elements(image, [&](auto* x) {
    for (int64_t row = 0; row < size.channels * size.height; ++row, x += size.width) std::reverse(x, x + size.width);
  });
}

void augment::cutout(View image, int64_t size, Random& random) {
  const Size whole = size_of_image("cutout", image);
  if (size < 1) throw Error(ErrorCode::option, cat("size = ", size), "must be at least 1 pixel");
  const int64_t half = size / 2;
  const auto range = [&](int64_t length) {
    const int64_t first = random.integer(length) - half;
    const int64_t last = size > length - first ? length : first + size;
    return std::pair{std::max<int64_t>(first, 0), last};
  };
  const auto [top, bottom] = range(whole.height);
  const auto [left, right] = range(whole.width);
  with_elements(image, [&, top = top, bottom = bottom, left = left, right = right](auto* x) {
    for (int64_t c = 0; c < whole.channels; ++c, x += whole.area()) {
      for (int64_t y = top; y < bottom; ++y) {
        std::fill(x + y * whole.width + left, x + y * whole.width + right, std::decay_t<decltype(*x)>{});
      }
    }
  });
}

void augment::normalize(View image, const NormalizeOptions& options) {
  const Size size = size_of_image("normalize", image);
  const std::vector<double> deviation = each_channel("deviation", options.deviation, size.channels);
  const std::vector<double> mean = each_channel("mean", options.mean, size.channels);
  for (const double value : deviation) {
    if (!(value > 0 && std::isfinite(value))) {
      throw Error(ErrorCode::option, cat("deviation = ", value), "must be more than 0 and finite");
    }
  }
  for (const double value : mean) {
    if (!std::isfinite(value)) throw Error(ErrorCode::option, cat("mean = ", value), "must be finite");
  }
  float* x = image.data<float>();
  for (size_t c = 0; c < mean.size(); ++c) {
    for (int64_t i = 0; i < size.area(); ++i, ++x) *x = static_cast<float>((*x - mean[c]) / deviation[c]);
  }
}

void augment::color_jitter(View image, const ColorJitterOptions& options, Random& random) {
  const Size size = size_of_image("color_jitter", image);
  check_range("brightness", options.brightness);
  check_range("contrast", options.contrast);
  check_range("saturation", options.saturation);
  if (options.saturation > 0 && size.channels != 3) {
    throw Error(ErrorCode::option, cat("saturation = ", options.saturation),
                cat("needs red, green and blue; the image has ", size.channels, " channels"));
  }
  const auto factor = [&](double range) {
    return range > 0 ? random.uniform(static_cast<float>(1 - range), static_cast<float>(1 + range)) : 1.0f;
  };
  const float brightness = factor(options.brightness);
  const float contrast = factor(options.contrast);
  const float saturation = factor(options.saturation);
  with_elements(image, [&](auto* x) { jitter(x, size, brightness, contrast, saturation); });
}

Augmented::Augmented(const Dataset& dataset, std::string field, Change change)
    : dataset_(dataset), field_(std::move(field)), change_(std::move(change)) {
  data::field_number(dataset.fields(), field_, dataset.name());
}

void Augmented::read(int64_t index, Sample& out, Random& random) const {
  dataset_.read(index, out, random);
  change_(out[field_], random);
}

}  // namespace brisk
