// From a file's bytes to a sample.
#include "data/image_reader.h"

#include <algorithm>
#include <cmath>

#include "core/file.h"
#include "core/text.h"

namespace brisk::data {
namespace {

Region at(double left, double top, double width, double height) { return {left, top, width, height}; }

// Area and ratio as in C. Szegedy et al., "Going deeper with convolutions", 2015; tries and the centre that is taken
// when none fits, as torchvision does it.
Region random_part(const ImageOptions& options, ImageSize image, Random& random) {
  constexpr int kTries = 10;
  const double most = std::log(options.widest_ratio);
  const double area = static_cast<double>(image.height) * static_cast<double>(image.width);
  for (int i = 0; i < kTries; ++i) {
    const double part = area * (options.smallest_area + (1 - options.smallest_area) * random.uniform());
    const double ratio = std::exp(most * (2.0 * random.uniform() - 1));
    const int64_t width = std::llround(std::sqrt(part * ratio)), height = std::llround(std::sqrt(part / ratio));
    if (width < 1 || height < 1 || width > image.width || height > image.height) continue;
    const int64_t top = random.integer(image.height - height + 1), left = random.integer(image.width - width + 1);
    return at(static_cast<double>(left), static_cast<double>(top), static_cast<double>(width),
              static_cast<double>(height));
  }
  const double height = static_cast<double>(image.height), width = static_cast<double>(image.width);
  const double ratio = std::clamp(width / height, 1 / options.widest_ratio, options.widest_ratio);
  const double cut_width = std::min(width, height * ratio), cut_height = std::min(height, width / ratio);
  return at((width - cut_width) / 2, (height - cut_height) / 2, cut_width, cut_height);
}

}  // namespace

ImagePart choose_part(const ImageOptions& options, ImageSize image, Random& random) {
  if (options.form == ImageForm::random_resized_crop) {
    const Region region = random_part(options, image, random);
    return {region, random.chance(options.flip)};
  }
  // The image as it would be after the resize; the longer side is cut to whole pixels.
  const int64_t shorter = std::min(image.height, image.width);
  const int64_t height = options.resize * image.height / shorter, width = options.resize * image.width / shorter;
  const double down = static_cast<double>(image.height) / static_cast<double>(height);
  const double across = static_cast<double>(image.width) / static_cast<double>(width);
  const bool drawn = options.form == ImageForm::random_crop;
  const int64_t free_rows = height - options.size.height, free_columns = width - options.size.width;
  const int64_t top = drawn ? random.integer(free_rows + 1) : (free_rows + 1) / 2;
  const int64_t left = drawn ? random.integer(free_columns + 1) : (free_columns + 1) / 2;
  const Region region =
      at(static_cast<double>(left) * across, static_cast<double>(top) * down,
         static_cast<double>(options.size.width) * across, static_cast<double>(options.size.height) * down);
  return {region, drawn && random.chance(options.flip)};
}

void ImageReader::load(const std::string& path, const ImageOptions& options) {
  InputFile file(path);
  // More than any image of so many pixels takes, without compression and with 16 bits a channel.
  const int64_t most_bytes = options.most_pixels * 8 + (int64_t{1} << 20);
  if (file.size() > most_bytes) {
    throw Corrupt(
        cat(grouped(file.size()), " bytes are too many for an image of most_pixels = ", grouped(options.most_pixels)));
  }
  bytes_.resize(static_cast<size_t>(file.size()));
  bytes_.resize(static_cast<size_t>(file.read(bytes_.data(), file.size())));
  if (bytes_.empty()) throw Corrupt("the file has 0 bytes");
}

Codec& ImageReader::codec() {
  const auto begins = [&](std::initializer_list<uint8_t> mark) {
    return bytes_.size() >= mark.size() && std::equal(mark.begin(), mark.end(), bytes_.begin());
  };
  if (begins({0xff, 0xd8, 0xff})) {
    if (!jpeg_) jpeg_ = make_jpeg_codec();
    return *jpeg_;
  }
  if (begins({0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'})) {
    if (!png_) png_ = make_png_codec();
    return *png_;
  }
  throw Corrupt("is neither a JPEG nor a PNG file: it begins with neither's first bytes");
}

void ImageReader::read(const std::string& path, const ImageOptions& options, View out, Random& random) {
  load(path, options);
  Codec& decoder = codec();
  const ImageSize image = decoder.open(bytes_);
  if (image.height < 1 || image.width < 1 || image.height > options.most_pixels / image.width) {
    throw Corrupt(cat("declares ", image.width, " x ", image.height,
                      " pixels, allowed are 1 to most_pixels = ", grouped(options.most_pixels)));
  }
  const ImagePart part = choose_part(options, image, random);
  const Pixels pixels = decoder.decode(part.region, options.size);
  const double scale = 1.0 / static_cast<double>(pixels.reduction);
  const Region reduced =
      at(part.region.left * scale, part.region.top * scale, part.region.width * scale, part.region.height * scale);
  resampler_.run(pixels, reduced, {options.channels_first, part.mirrored}, out);
}

}  // namespace brisk::data
