// Tensors that own aligned host memory, and checked access through views.
#include "brisk/tensor.h"

#include <cstdlib>
#include <cstring>

#include "core/host_view.h"
#include "core/machine.h"
#include "core/text.h"

namespace brisk {
namespace {

// Vector loads of any ISA are aligned and no two tensors share a cache line.
constexpr size_t kAlignment = 64;
// Below this the answer of the system is not worth asking for.
constexpr int64_t kAskSystemFrom = int64_t{64} << 20;

int64_t byte_count(const Shape& shape, DType dtype) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(shape.count(), size_of(dtype), &bytes) || bytes > INT64_MAX - int64_t{kAlignment}) {
    throw Error(ErrorCode::shape, shape.text(), "the number of bytes does not fit 63 bits");
  }
  return bytes;
}

std::shared_ptr<void> allocate(int64_t bytes) {
  if (bytes >= kAskSystemFrom) check_memory("tensor", bytes);
  const size_t rounded = (static_cast<size_t>(bytes) + kAlignment) / kAlignment * kAlignment;  // never zero
  void* memory = std::aligned_alloc(kAlignment, rounded);
  if (!memory) throw_no_memory("tensor", bytes);
  return {memory, [](void* p) { std::free(p); }};
}

void check_rows(const Shape& shape, int64_t first, int64_t count) {
  const int64_t rows = shape.rank() > 0 ? shape[0] : 0;
  if (shape.rank() == 0 || first < 0 || count < 0 || first > rows || count > rows - first) {
    throw Error(ErrorCode::shape, cat("rows(", first, ", ", count, ")"),
                shape.rank() == 0
                    ? std::string("a scalar has no rows")
                    : cat("the view ", shape, " has ", rows, " rows; first + count must not exceed them"));
  }
}

}  // namespace

ConstView ConstView::rows(int64_t first, int64_t count) const {
  check_rows(shape_, first, count);
  ConstView out = *this;
  out.shape_[0] = count;
  const int64_t row_bytes = shape_[0] == 0 ? 0 : shape_.count() / shape_[0] * size_of(dtype_);
  if (data_) out.data_ = static_cast<const std::byte*>(data_) + first * row_bytes;
  return out;
}

View View::rows(int64_t first, int64_t count) const {
  const ConstView part = ConstView::rows(first, count);
  return {const_cast<void*>(part.raw()), part.shape(), part.dtype(), part.device()};
}

void check_host(const std::string& field, const ConstView& view) {
  if (view.device() != cpu()) {
    throw Error(ErrorCode::data, field, cat("lies on ", view.device(), "; give a view of host memory"));
  }
  if (!view.raw() && view.count() > 0) throw Error(ErrorCode::data, field, "is a view of nothing (null)");
}

void ConstView::check_dtype(DType wanted) const {
  if (wanted != dtype_) {
    throw Error(ErrorCode::data, cat("data<", name(wanted), ">()"),
                cat("the elements of this view ", shape_, " are ", name(dtype_), "; ask for that type"));
  }
}

void check_count(int64_t have, const Shape& shape) {
  if (have != shape.count()) {
    throw Error(ErrorCode::shape, shape.text(), cat("needs ", shape.count(), " elements, the vector has ", have));
  }
}

Tensor::Tensor(Shape shape, DType dtype) : shape_(shape), dtype_(dtype) {
  const int64_t bytes = byte_count(shape, dtype);
  bytes_ = allocate(bytes);
  std::memset(bytes_.get(), 0, static_cast<size_t>(bytes));
}

Tensor::Tensor(const ConstView& view) : shape_(view.shape()), dtype_(view.dtype()) {
  check_host("Tensor", view);
  const int64_t bytes = byte_count(shape_, dtype_);
  bytes_ = allocate(bytes);
  if (bytes > 0) std::memcpy(bytes_.get(), view.raw(), static_cast<size_t>(bytes));
}

Tensor::Tensor(const Tensor& other) {
  if (other.bytes_) *this = Tensor(ConstView(other));
}

Tensor& Tensor::operator=(const Tensor& other) {
  if (this != &other) *this = Tensor(other);
  return *this;
}

Tensor::Tensor(Adopted adopted, Shape shape, DType dtype)
    : bytes_(std::move(adopted.bytes)), shape_(shape), dtype_(dtype) {
  check_count(adopted.count, shape);
}

}  // namespace brisk
