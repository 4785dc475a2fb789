// One image file to one sample: its kind, the part that is wanted, decoding, resampling.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "brisk/images.h"
#include "data/codec.h"
#include "data/resample.h"

namespace brisk::data {

/// A part of an image in its own pixels, and whether it is mirrored.
struct ImagePart {
  Region region;
  bool mirrored = false;
};

/// The part that the options' form asks for; `resize` is set. Draws from `random` what does not depend on the pixels.
ImagePart choose_part(const ImageOptions& options, ImageSize image, Random& random);

/// The decoders and buffers of one thread.
class ImageReader {
 public:
  /// out: [height, width, 3] or [3, height, width] as the options say. Throws Corrupt, and Error [file] for what cannot
  /// be read at all.
  void read(const std::string& path, const ImageOptions& options, View out, Random& random);

 private:
  void load(const std::string& path, const ImageOptions& options);
  Codec& codec();

  std::vector<uint8_t> bytes_;
  std::unique_ptr<Codec> jpeg_;
  std::unique_ptr<Codec> png_;
  Resampler resampler_;
};

}  // namespace brisk::data
