// What reads one kind of image file: the seam between image folders and the decoders' libraries.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>

#include "brisk/images.h"

namespace brisk::data {

/// A file that is no whole image; what() says why.
struct Corrupt : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A part of an image, in its pixels.
struct Region {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
};

/// Lines first .. last - 1.
struct Extent {
  int64_t first = 0;
  int64_t last = 0;
  int64_t size() const { return last - first; }
};

/// Decoded pixels, RGB, of the image at 1/`reduction` of its size. They hold until the codec opens the next file.
struct Pixels {
  static constexpr int64_t kReadableBehind = 16;  ///< bytes behind the last row that may be read
  const uint8_t* data = nullptr;                  ///< of the first row and column
  int64_t row_bytes = 0;
  Extent rows;
  Extent columns;
  int64_t reduction = 1;
};

/// Keeps its memory from file to file. One thread at a time.
class Codec {
 public:
  virtual ~Codec() = default;
  /// Reads the header. The bytes must stay until decode() is done. Throws Corrupt.
  virtual ImageSize open(std::span<const uint8_t> bytes) = 0;
  /// At least the pixels that resampling the region to `wanted` needs, reduced no further than to that size. Checks the
  /// file to its end. Throws Corrupt.
  virtual Pixels decode(const Region& region, ImageSize wanted) = 0;
};

/// Throw Error [option] in a build without the library.
std::unique_ptr<Codec> make_jpeg_codec();
std::unique_ptr<Codec> make_png_codec();

}  // namespace brisk::data
