// PNG files by libpng. All rows are unpacked, so that damage anywhere is found; those that are needed are kept.
#include <png.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "core/text.h"
#include "data/c_guard.h"
#include "data/resample.h"

namespace brisk::data {
namespace {

class PngCodec : public Codec {
 public:
  ~PngCodec() override { close(); }

  ImageSize open(std::span<const uint8_t> bytes) override {
    close();
    bytes_ = bytes;
    guarded([&] {
      png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, stop, [](png_structp, png_const_charp) {});
      if (png_ != nullptr) info_ = png_create_info_struct(png_);
    });
    if (info_ == nullptr) throw std::bad_alloc();
    guarded([&] {
      png_set_read_fn(png_, this, give);
      png_read_info(png_, info_);
    });
    return {png_get_image_height(png_, info_), png_get_image_width(png_, info_)};
  }

  Pixels decode(const Region& region, ImageSize wanted) override {
    const int64_t height = png_get_image_height(png_, info_), width = png_get_image_width(png_, info_);
    guarded([&] { ask_for_rgb(); });
    // An interlaced image is put together in several passes over all rows.
    const Extent rows = passes_ > 1 ? Extent{0, height} : needed(region.top, region.height, wanted.height, height);
    const int64_t row_bytes = width * 3;
    pixels_.resize(static_cast<size_t>((rows.size() + 1) * row_bytes + Pixels::kReadableBehind));
    uint8_t* const first = pixels_.data();
    guarded([&, first] {
      for (int pass = 0; pass < passes_; ++pass) {
        for (int64_t y = 0; y < height; ++y) {
          const bool kept = y >= rows.first && y < rows.last;
          png_read_row(png_, first + (kept ? y - rows.first : rows.size()) * row_bytes, nullptr);
        }
      }
      png_read_end(png_, nullptr);
    });
    close();
    return {first, row_bytes, rows, {0, width}, 1};
  }

 private:
  [[noreturn]] static void stop(png_structp png, png_const_charp text) {
    CGuard& guard = static_cast<PngCodec*>(png_get_error_ptr(png))->guard_;
    std::snprintf(guard.message(), CGuard::kMessageBytes, "%s", text);
    guard.fail();
  }

  static void give(png_structp png, png_bytep out, size_t count) {
    PngCodec& codec = *static_cast<PngCodec*>(png_get_io_ptr(png));
    if (codec.bytes_.size() < count) png_error(png, "the file ends too early");
    std::memcpy(out, codec.bytes_.data(), count);
    codec.bytes_ = codec.bytes_.subspan(count);
  }

  void ask_for_rgb() {
    png_set_scale_16(png_);
    png_set_palette_to_rgb(png_);
    png_set_expand_gray_1_2_4_to_8(png_);
    png_set_gray_to_rgb(png_);
    png_set_strip_alpha(png_);
    passes_ = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    if (png_get_rowbytes(png_, info_) != size_t{3} * png_get_image_width(png_, info_)) {
      png_error(png_, "a row is not red, green and blue of 8 bits");
    }
  }

  template <class F>
  void guarded(const F& f) {
    if (guard_.run(f)) return;
    close();
    throw Corrupt(guard_.message());
  }

  void close() {
    if (png_ != nullptr) png_destroy_read_struct(&png_, info_ != nullptr ? &info_ : nullptr, nullptr);
    png_ = nullptr;
    info_ = nullptr;
  }

  CGuard guard_;
  std::span<const uint8_t> bytes_;  // not yet read
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  int passes_ = 1;
  std::vector<uint8_t> pixels_;
};

}  // namespace

std::unique_ptr<Codec> make_png_codec() { return std::make_unique<PngCodec>(); }

}  // namespace brisk::data
