// Images made at run time: pictures, and their JPEG and PNG files as strings.
#pragma once

#include <cstdio>

#include <jpeglib.h>  // needs what stands before
#include <png.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace brisk::test {

struct Picture {
  int height = 0;
  int width = 0;
  std::vector<uint8_t> rgb{};
  const uint8_t* at(int64_t y, int64_t x) const { return rgb.data() + (y * width + x) * 3; }
};

/// Waves with some texture, different for each seed.
inline Picture picture(int height, int width, int seed = 0) {
  Picture out{height, width, {}};
  uint32_t noise = static_cast<uint32_t>(seed) * 2654435761u + 1;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        noise = noise * 1664525u + 1013904223u;
        const double wave = std::sin(0.031 * x * (c + 1) + seed) + std::cos(0.047 * y + c);
        out.rgb.push_back(static_cast<uint8_t>(128 + 50 * wave + static_cast<double>(noise >> 28)));
      }
    }
  }
  return out;
}

struct JpegOptions {
  bool grey = false;
  bool inks = false;  ///< CMYK, inverted as Adobe's programs store it
  bool progressive = false;
  int quality = 90;
  int restart_rows = 0;
  int sampling = 2;  ///< 2: colours at half the resolution both ways
};

inline std::string encode_jpeg(const Picture& picture, const JpegOptions& options = {}) {
  jpeg_compress_struct info = {};
  jpeg_error_mgr errors = {};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_height = static_cast<JDIMENSION>(picture.height);
  info.image_width = static_cast<JDIMENSION>(picture.width);
  info.input_components = options.grey ? 1 : options.inks ? 4 : 3;
  info.in_color_space = options.grey ? JCS_GRAYSCALE : options.inks ? JCS_CMYK : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, options.quality, TRUE);
  info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = options.inks ? 1 : options.sampling;
  info.restart_in_rows = options.restart_rows;
  if (options.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  std::vector<uint8_t> row;
  for (int y = 0; y < picture.height; ++y) {
    row.clear();
    for (int x = 0; x < picture.width; ++x) {
      const uint8_t* pixel = picture.at(y, x);
      if (options.grey) row.push_back(pixel[1]);
      if (!options.grey) row.insert(row.end(), pixel, pixel + 3);
      if (options.inks) row.push_back(255);  // no black
    }
    JSAMPROW pointer = row.data();
    jpeg_write_scanlines(&info, &pointer, 1);
  }
  jpeg_finish_compress(&info);
  std::string out(reinterpret_cast<char*>(bytes), size);
  jpeg_destroy_compress(&info);
  std::free(bytes);
  return out;
}

struct PngOptions {
  int bits = 8;  ///< a channel: 1 (grey), 8 or 16
  bool interlaced = false;
  int kind = PNG_COLOR_TYPE_RGB;  ///< with a palette: the greys
};

inline std::string encode_png(const Picture& picture, const PngOptions& options = {}) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  std::string out;
  png_set_write_fn(
      png, &out,
      [](png_structp from, png_bytep bytes, size_t count) {
        static_cast<std::string*>(png_get_io_ptr(from))->append(reinterpret_cast<char*>(bytes), count);
      },
      nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(picture.width), static_cast<png_uint_32>(picture.height),
               options.bits, options.kind, options.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  std::vector<png_color> greys(256);
  for (size_t i = 0; i < 256; ++i) greys[i].red = greys[i].green = greys[i].blue = static_cast<png_byte>(i);
  if (options.kind == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, greys.data(), 256);
  png_write_info(png, info);
  std::vector<std::vector<uint8_t>> rows;
  for (int y = 0; y < picture.height; ++y) {
    std::vector<uint8_t>& row = rows.emplace_back();
    if (options.bits == 1) row.resize(static_cast<size_t>(picture.width + 7) / 8);
    for (int x = 0; x < picture.width; ++x) {
      std::vector<uint8_t> values(picture.at(y, x), picture.at(y, x) + 3);
      if ((options.kind & PNG_COLOR_MASK_COLOR) == 0 || options.kind == PNG_COLOR_TYPE_PALETTE) values.resize(1);
      if (options.kind & PNG_COLOR_MASK_ALPHA) values.push_back(static_cast<uint8_t>(x));
      if (options.bits == 1) row[static_cast<size_t>(x) / 8] |= static_cast<uint8_t>((values[0] >> 7) << (7 - x % 8));
      for (const uint8_t value : values) row.insert(row.end(), options.bits == 1 ? 0 : options.bits / 8, value);
    }
  }
  std::vector<png_bytep> pointers;
  for (auto& row : rows) pointers.push_back(row.data());
  png_write_image(png, pointers.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return out;
}

/// The whole image as the library decodes it at 1/`reduction` of its size.
inline Picture decode_jpeg(const std::string& bytes, int reduction = 1) {
  jpeg_decompress_struct info = {};
  jpeg_error_mgr errors = {};
  info.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&info, TRUE);
  info.scale_num = 1;
  info.scale_denom = static_cast<unsigned>(reduction);
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  Picture out{static_cast<int>(info.output_height), static_cast<int>(info.output_width), {}};
  out.rgb.resize(static_cast<size_t>(out.height) * static_cast<size_t>(out.width) * 3);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = out.rgb.data() + static_cast<size_t>(info.output_scanline) * static_cast<size_t>(out.width) * 3;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return out;
}

}  // namespace brisk::test
