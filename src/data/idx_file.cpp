// Reading IDX: everything is checked before memory is taken, so a false header costs nothing.
#include "data/idx_file.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "brisk/data.h"
#include "core/text.h"
#include "data/byte_source.h"

namespace brisk::data {
namespace {

constexpr int kUnsignedByte = 0x08;

std::string hex(const uint8_t* bytes, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    char buffer[4];
    std::snprintf(buffer, sizeof(buffer), "%02x", bytes[i]);
    out += (i ? " " : "") + std::string(buffer);
  }
  return out;
}

class IdxReader {
 public:
  explicit IdxReader(const std::string& path) : path_(path), source_(open_source(path)) {}

  Tensor read(bool channel) {
    const Shape shape = read_header();
    const int64_t elements = checked_count(shape);
    check_size(shape, elements);
    Tensor out(channel && shape.rank() == 3 ? Shape{shape[0], 1, shape[1], shape[2]} : shape, DType::u8);
    const int64_t got = source_->read(out.data<uint8_t>(), elements);
    if (got < elements) refuse_size(shape, elements, cat("holds only ", grouped(header_bytes_ + got)));
    uint8_t extra = 0;
    if (source_->read(&extra, 1) != 0) refuse_size(shape, elements, "holds more; it was not unpacked further");
    return out;
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const { throw Error(ErrorCode::file, path_, reason); }

  void read_header_part(uint8_t* out, int64_t count, int64_t header_bytes) {
    const int64_t got = source_->read(out, count);
    header_bytes_ += got;
    if (got < count) {
      refuse(cat("the IDX header is cut: ", header_bytes, " bytes expected", header_bytes == 4 ? " at least" : "",
                 ", there are ", header_bytes_));
    }
  }

  Shape read_header() {
    std::array<uint8_t, 4> magic = {};
    read_header_part(magic.data(), 4, 4);
    check_magic(magic);
    Shape shape;
    for (int i = 0; i < magic[3]; ++i) {
      std::array<uint8_t, 4> size = {};
      read_header_part(size.data(), 4, 4 + 4 * int64_t{magic[3]});
      shape.append(int64_t{size[0]} << 24 | int64_t{size[1]} << 16 | int64_t{size[2]} << 8 | int64_t{size[3]});
    }
    return shape;
  }

  void check_magic(const std::array<uint8_t, 4>& magic) const {
    const std::string begins = cat("the file begins with ", hex(magic.data(), 4));
    if (magic[2] == 0 && magic[3] == 0 && magic[1] != 0) {
      refuse(
          cat(begins, ": a little-endian header; the numbers of IDX are big-endian, 00 00 08 ", hex(magic.data(), 1)));
    }
    if (magic[0] != 0 || magic[1] != 0) refuse(cat(begins, "; an IDX file begins with 00 00"));
    if (magic[2] != kUnsignedByte) {
      refuse(cat(begins, ": type code 0x", hex(&magic[2], 1), "; allowed is 0x08, unsigned bytes"));
    }
    if (magic[3] < 1 || magic[3] >= Shape::kMaximumRank) {
      refuse(cat(begins, ": ", int{magic[3]}, " dimensions; allowed are 1 to ", Shape::kMaximumRank - 1));
    }
  }

  int64_t checked_count(const Shape& shape) const {
    int64_t product = 1;
    for (const int64_t size : shape) {
      if (size == 0) refuse(cat("the header declares the shape ", shape, "; every dimension must be at least 1"));
      if (__builtin_mul_overflow(product, size, &product)) {
        refuse(cat("the header declares the shape ", shape, ", whose product does not fit 63 bits"));
      }
    }
    return product;
  }

  void check_size(const Shape& shape, int64_t elements) const {
    int64_t expected = 0;
    if (__builtin_add_overflow(elements, header_bytes_, &expected)) {
      refuse(cat("the header declares the shape ", shape, ", whose size does not fit 63 bits"));
    }
    if (!source_->packed() && source_->file_bytes() != expected) {
      refuse_size(shape, elements, cat("has ", grouped(source_->file_bytes())));
    }
    if (source_->most_bytes() < expected) {
      refuse_size(shape, elements, cat("is gzip of ", grouped(source_->file_bytes()), ", which cannot unpack to that"));
    }
  }

  [[noreturn]] void refuse_size(const Shape& shape, int64_t elements, const std::string& actual) const {
    refuse(cat("the header declares the shape ", shape, ": ", grouped(header_bytes_ + elements),
               " bytes expected (header ", 4 + 4 * shape.rank(), " + ", grouped(elements), "), the file ", actual));
  }

  const std::string path_;
  const std::unique_ptr<ByteSource> source_;
  int64_t header_bytes_ = 0;
};

}  // namespace

Tensor read_idx_bytes(const std::string& path, bool channel) { return IdxReader(path).read(channel); }

InMemoryDataset idx(const std::string& images_path, const std::string& labels_path) {
  const Tensor labels = read_idx_bytes(labels_path);
  if (labels.shape().rank() != 1) {
    throw Error(ErrorCode::file, labels_path,
                cat("labels must have one dimension, the file has the shape ", labels.shape()));
  }
  Tensor images = read_idx_bytes(images_path, true);
  if (images.dim(0) != labels.dim(0)) {
    throw Error(ErrorCode::file, images_path,
                cat("has ", images.dim(0), " images, but ", labels_path, " has ", labels.dim(0), " labels"));
  }
  Tensor targets(labels.shape(), DType::i64);
  std::copy_n(labels.data<uint8_t>(), labels.count(), targets.data<int64_t>());
  InMemoryDataset out;
  out.add_pixels("input", std::move(images));
  out.add("target", std::move(targets));
  return out;
}

}  // namespace brisk::data
