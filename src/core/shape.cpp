// Element types, shapes and devices: sizes checked, printed as users read them.
#include <algorithm>

#include "brisk/tensor.h"
#include "core/text.h"

namespace brisk {

const char* name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::u8:
      return "u8";
  }
  return "unknown";
}

int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::u8:
      return 1;
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::i64:
      return 8;
  }
  return 0;
}

Shape::Shape(std::initializer_list<int64_t> sizes) : Shape(std::span<const int64_t>(sizes.begin(), sizes.size())) {}

Shape::Shape(std::span<const int64_t> sizes) {
  for (const int64_t size : sizes) append(size);
}

int64_t Shape::dim(int axis) const {
  const int from_front = axis < 0 ? axis + rank_ : axis;
  if (from_front < 0 || from_front >= rank_) {
    throw Error(ErrorCode::shape, cat("dimension ", axis),
                cat("the shape ", *this, " has ", rank_, " dimensions; allowed is ", -rank_, " to ", rank_ - 1));
  }
  return sizes_[from_front];
}

int64_t Shape::count() const {
  // A zero anywhere makes the product zero, however large the other sizes are.
  if (std::find(begin(), end(), 0) != end()) return 0;
  int64_t product = 1;
  for (const int64_t size : *this) {
    if (__builtin_mul_overflow(product, size, &product)) {
      throw Error(ErrorCode::shape, text(), "the number of elements does not fit 63 bits");
    }
  }
  return product;
}

void Shape::append(int64_t size) {
  if (size < 0) throw Error(ErrorCode::shape, cat("size ", size), "a dimension must be at least 0");
  if (rank_ == kMaximumRank) {
    throw Error(ErrorCode::shape, text(), cat("a shape has at most ", kMaximumRank, " dimensions; join some"));
  }
  sizes_[rank_++] = size;
}

std::string Shape::text() const {
  std::string out = "[";
  for (int i = 0; i < rank_; ++i) out += (i ? ", " : "") + std::to_string(sizes_[i]);
  return out + "]";
}

bool operator==(const Shape& a, const Shape& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

std::string Device::text() const { return kind_ == Kind::cpu ? "cpu" : cat("gpu ", index_); }

}  // namespace brisk
