// brisk/tensor.h: element types, shapes, devices; a tensor that owns its bytes and views that borrow them.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "brisk/error.h"
#include "brisk/export.h"

namespace brisk {

/// How an element is stored.
enum class DType : uint8_t { f32, f16, bf16, i32, i64, u8 };
BRISK_EXPORT const char* name(DType dtype);
/// Bytes of one element.
BRISK_EXPORT int64_t size_of(DType dtype);

/// Sizes of the dimensions, outermost first; at most 8; each >= 0. An empty shape is a scalar.
class BRISK_EXPORT Shape {
 public:
  static constexpr int kMaximumRank = 8;
  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes);
  explicit Shape(std::span<const int64_t> sizes);

  int rank() const { return rank_; }
  /// Size of dimension `axis`; negative counts from the end. Throws Error [shape] outside [-rank, rank).
  int64_t dim(int axis) const;
  int64_t operator[](int axis) const { return sizes_[axis]; }  ///< unchecked, axis >= 0
  int64_t& operator[](int axis) { return sizes_[axis]; }
  const int64_t* begin() const { return sizes_; }
  const int64_t* end() const { return sizes_ + rank_; }
  /// Product of the sizes (1 for a scalar). Throws Error [shape] when it does not fit 63 bits.
  int64_t count() const;
  void append(int64_t size);
  /// "[50, 4, 4]"
  std::string text() const;
  friend BRISK_EXPORT bool operator==(const Shape& a, const Shape& b);

 private:
  int64_t sizes_[kMaximumRank] = {};
  int rank_ = 0;
};

/// Where bytes live and kernels run.
class BRISK_EXPORT Device {
 public:
  enum class Kind : uint8_t { cpu, gpu };
  constexpr Device() = default;
  constexpr Device(Kind kind, int index) : kind_(kind), index_(index) {}
  constexpr Kind kind() const { return kind_; }
  constexpr int index() const { return index_; }
  /// "cpu", "gpu 0"
  std::string text() const;
  friend constexpr bool operator==(const Device&, const Device&) = default;

 private:
  Kind kind_ = Kind::cpu;
  int index_ = 0;
};
constexpr Device cpu() { return {}; }
constexpr Device gpu(int index) { return {Device::Kind::gpu, index}; }

/// The DType of a C++ element type; only float, int32_t, int64_t (and long long), uint8_t have one.
template <class T>
constexpr DType dtype_of() {
  using U = std::remove_cv_t<T>;
  static_assert(std::is_same_v<U, float> || (std::is_integral_v<U> && std::is_signed_v<U> && sizeof(U) >= 4) ||
                    std::is_same_v<U, uint8_t>,
                "elements are float, int32_t, int64_t or uint8_t; give 16-bit floats as (pointer, shape, DType::f16)");
  if constexpr (std::is_same_v<U, float>) return DType::f32;
  if constexpr (std::is_same_v<U, uint8_t>) return DType::u8;
  return sizeof(U) == 8 ? DType::i64 : DType::i32;
}

/// Borrowed, read-only, contiguous, row-major elements. Never owns: the bytes must outlive the call it is given to.
class BRISK_EXPORT ConstView {
 public:
  ConstView() = default;
  template <class T, class = std::enable_if_t<!std::is_void_v<T>>>
  ConstView(const T* data, Shape shape) : ConstView(data, shape, dtype_of<T>()) {}
  ConstView(const void* data, Shape shape, DType dtype, Device device = {})
      : data_(data), shape_(shape), dtype_(dtype), device_(device) {}

  const Shape& shape() const { return shape_; }
  int64_t dim(int axis) const { return shape_.dim(axis); }
  int64_t count() const { return shape_.count(); }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  const void* raw() const { return data_; }
  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(data_), static_cast<size_t>(count() * size_of(dtype_))};
  }
  /// The elements as T. Throws Error [data] when T is not the view's element type.
  template <class T>
  const T* data() const {
    check_dtype(dtype_of<T>());
    return static_cast<const T*>(data_);
  }
  /// Rows [first, first + count) of the leading dimension, no copy. Throws Error [shape] when out of range.
  ConstView rows(int64_t first, int64_t count) const;

 protected:
  void check_dtype(DType wanted) const;
  const void* data_ = nullptr;
  Shape shape_;
  DType dtype_ = DType::f32;
  Device device_;
};

/// Borrowed elements that may be written.
class BRISK_EXPORT View : public ConstView {
 public:
  View() = default;
  template <class T, class = std::enable_if_t<!std::is_void_v<T> && !std::is_const_v<T>>>
  View(T* data, Shape shape) : ConstView(data, shape) {}
  View(void* data, Shape shape, DType dtype, Device device = {}) : ConstView(data, shape, dtype, device) {}
  void* raw() const { return const_cast<void*>(data_); }
  template <class T>
  T* data() const {
    return const_cast<T*>(ConstView::data<T>());
  }
  View rows(int64_t first, int64_t count) const;
};

/// A view of a pointer, or of a vector or std::array whose size must be the shape's. A temporary one does not compile:
/// it dies at the end of the line; name it, or use Tensor(std::move(v), shape).
template <class T>
View view(T* data, Shape shape) requires(!std::is_const_v<T>) {
  return View(data, shape);
}
template <class T>
ConstView view(const T* data, Shape shape) {
  return ConstView(data, shape);
}
BRISK_EXPORT void check_count(int64_t have, const Shape& shape);
template <class T>
View view(std::vector<T>& data, Shape shape) {
  check_count(static_cast<int64_t>(data.size()), shape);
  return View(data.data(), shape);
}
template <class T>
ConstView view(const std::vector<T>& data, Shape shape) {
  check_count(static_cast<int64_t>(data.size()), shape);
  return ConstView(data.data(), shape);
}
template <class T, size_t N>
View view(std::array<T, N>& data, Shape shape) {
  check_count(static_cast<int64_t>(N), shape);
  return View(data.data(), shape);
}
template <class T, size_t N>
ConstView view(const std::array<T, N>& data, Shape shape) {
  check_count(static_cast<int64_t>(N), shape);
  return ConstView(data.data(), shape);
}
template <class T, size_t N>
void view(std::array<T, N>&& data, Shape shape) = delete;  // the array dies here: name it
template <class T>
void view(std::vector<T>&& data,
          Shape shape) = delete;  // the vector dies here: name it, or Tensor(std::move(v), shape)

/// Owns contiguous row-major elements in host memory. A copy copies the elements, as std::vector does.
class BRISK_EXPORT Tensor {
 public:
  Tensor() = default;
  /// Zeros.
  explicit Tensor(Shape shape, DType dtype = DType::f32);
  /// Adopts the vector without a copy. Throws Error [shape] when its size is not the shape's.
  template <class T>
  Tensor(std::vector<T>&& data, Shape shape) : Tensor(adopt(std::move(data)), shape, dtype_of<T>()) {}
  /// Copies the elements of a view.
  explicit Tensor(const ConstView& view);
  Tensor(const Tensor& other);
  Tensor& operator=(const Tensor& other);
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(Tensor&&) noexcept = default;

  const Shape& shape() const { return shape_; }
  int64_t dim(int axis) const { return shape_.dim(axis); }
  int64_t count() const { return shape_.count(); }
  DType dtype() const { return dtype_; }
  template <class T>
  const T* data() const {
    return ConstView(*this).data<T>();
  }
  template <class T>
  T* data() {
    return View(*this).data<T>();
  }
  operator ConstView() const { return {bytes_.get(), shape_, dtype_}; }  // NOLINT: a tensor is a view of itself
  operator View() { return {bytes_.get(), shape_, dtype_}; }             // NOLINT

 private:
  struct Adopted {
    std::shared_ptr<void> bytes;
    int64_t count = 0;
  };
  template <class T>
  static Adopted adopt(std::vector<T>&& data) {
    auto owner = std::make_shared<std::vector<T>>(std::move(data));
    const int64_t count = static_cast<int64_t>(owner->size());
    return {std::shared_ptr<void>(owner, owner->data()), count};
  }
  Tensor(Adopted adopted, Shape shape, DType dtype);
  std::shared_ptr<void> bytes_;  // never shared between two tensors
  Shape shape_;
  DType dtype_ = DType::f32;
};

}  // namespace brisk
