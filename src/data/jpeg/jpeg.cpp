// JPEG files by libjpeg-turbo: only the rows and columns that are needed are transformed, at a reduced size when that
// suffices; the entropy-coded data are read to the end, so that damage anywhere is found.
#include <cstdio>

#include <jpeglib.h>  // needs what stands before

#include <algorithm>
#include <vector>

#include "core/text.h"
#include "data/c_guard.h"
#include "data/resample.h"

namespace brisk::data {
namespace {

static_assert(CGuard::kMessageBytes >= JMSG_LENGTH_MAX);
// Progressive files of a few kilobytes can declare thousands of passes over the whole image.
constexpr int kMostScans = 200;

struct ErrorManager : jpeg_error_mgr {
  CGuard guard;
};

CGuard& guard_of(j_common_ptr info) { return static_cast<ErrorManager*>(info->err)->guard; }

[[noreturn]] void stop(j_common_ptr info) {
  info->err->format_message(info, guard_of(info).message());
  guard_of(info).fail();
}

// The library would go on after a warning, with grey in the place of what is lost.
void stop_at_warning(j_common_ptr info, int level) {
  if (level < 0) stop(info);
}

void limit_scans(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
  std::snprintf(guard_of(info).message(), CGuard::kMessageBytes, "more than %d scans", kMostScans);
  guard_of(info).fail();
}

class JpegCodec : public Codec {
 public:
  JpegCodec() {
    info_.err = jpeg_std_error(&errors_);
    errors_.error_exit = stop;
    errors_.emit_message = stop_at_warning;
    progress_.progress_monitor = limit_scans;
    guarded([&] { jpeg_create_decompress(&info_); });
    info_.progress = &progress_;
  }
  ~JpegCodec() override { jpeg_destroy_decompress(&info_); }

  ImageSize open(std::span<const uint8_t> bytes) override {
    jpeg_abort_decompress(&info_);
    guarded([&] {
      jpeg_mem_src(&info_, bytes.data(), static_cast<unsigned long>(bytes.size()));
      jpeg_read_header(&info_, TRUE);
    });
    return {info_.image_height, info_.image_width};
  }

  Pixels decode(const Region& region, ImageSize wanted) override {
    const int64_t reduction = reduction_of(region, wanted);
    const bool inks = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    info_.scale_num = 1;
    info_.scale_denom = static_cast<unsigned>(reduction);
    info_.out_color_space = inks ? JCS_CMYK : JCS_RGB;
    guarded([&] { jpeg_start_decompress(&info_); });

    const double scale = 1.0 / static_cast<double>(reduction);
    const Extent rows = needed(region.top * scale, region.height * scale, wanted.height, info_.output_height);
    const Extent wide = needed(region.left * scale, region.width * scale, wanted.width, info_.output_width);
    JDIMENSION left = static_cast<JDIMENSION>(wide.first), width = static_cast<JDIMENSION>(wide.size());
    // Widened by the library to whole blocks on the left.
    if (wide.size() < info_.output_width) guarded([&] { jpeg_crop_scanline(&info_, &left, &width); });
    const int64_t row_bytes = static_cast<int64_t>(width) * info_.output_components;
    pixels_.resize(static_cast<size_t>((rows.size() + 1) * row_bytes + Pixels::kReadableBehind));
    read(rows, row_bytes);
    if (inks) to_rgb(static_cast<size_t>(rows.size()) * width);
    return {pixels_.data(), static_cast<int64_t>(width) * 3, rows, {left, left + width}, reduction};
  }

 private:
  template <class F>
  void guarded(const F& f) {
    if (errors_.guard.run(f)) return;
    jpeg_abort_decompress(&info_);
    throw Corrupt(errors_.guard.message());
  }

  // Reductions by powers of two are the ones that the library has vector code for.
  static int64_t reduction_of(const Region& region, ImageSize wanted) {
    int64_t out = 8;
    while (out > 1 && (region.width < static_cast<double>(wanted.width * out) ||
                       region.height < static_cast<double>(wanted.height * out))) {
      out /= 2;
    }
    return out;
  }

  // The last row of the image is always asked for: to get there, the library reads all that lies before.
  void read(const Extent& rows, int64_t row_bytes) {
    uint8_t* const first = pixels_.data();
    guarded([&, first] {
      const auto row = [&](int64_t y) {
        JSAMPROW to = first + std::min(y - rows.first, rows.size()) * row_bytes;
        jpeg_read_scanlines(&info_, &to, 1);
      };
      if (rows.first > 0) jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(rows.first));
      for (int64_t y = rows.first; y < rows.last; ++y) row(y);
      const JDIMENSION left = info_.output_height - static_cast<JDIMENSION>(rows.last);
      if (left > 1) jpeg_skip_scanlines(&info_, left - 1);
      if (left > 0) row(info_.output_height - 1);
      jpeg_finish_decompress(&info_);
    });
  }

  // Four inks to three colours, in place. Adobe's programs store inks inverted.
  void to_rgb(size_t count) {
    const uint8_t flip = info_.saw_Adobe_marker ? 0 : 255;
    const uint8_t* from = pixels_.data();
    uint8_t* to = pixels_.data();
    for (size_t i = 0; i < count; ++i, from += 4) {
      const int black = from[3] ^ flip;
      for (int c = 0; c < 3; ++c) *to++ = static_cast<uint8_t>(((from[c] ^ flip) * black + 127) / 255);
    }
  }

  ErrorManager errors_{};
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct info_{};
  std::vector<uint8_t> pixels_;
};

}  // namespace

std::unique_ptr<Codec> make_jpeg_codec() { return std::make_unique<JpegCodec>(); }

}  // namespace brisk::data
