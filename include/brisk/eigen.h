// brisk/eigen.h: Eigen's matrices as views and tensors as Eigen's maps, without copies. Optional: the only header that
// includes Eigen, and no part of brisk/brisk.h.
#pragma once

#include <Eigen/Core>
#include <type_traits>

#include "brisk/tensor.h"

namespace brisk {

/// Row-major [rows, columns], as Brisk's tensors are. T is const for what may only be read.
template <class T>
using RowMajorMap = Eigen::Map<std::conditional_t<
    std::is_const_v<T>, const Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>,
    Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>>;

namespace eigen_detail {

/// Whether the elements of each column (row) lie together: of a vector they do both ways.
template <class Matrix>
constexpr bool columns_are_packed = !Matrix::IsRowMajor || Matrix::RowsAtCompileTime == 1;
template <class Matrix>
constexpr bool rows_are_packed = Matrix::IsRowMajor || Matrix::ColsAtCompileTime == 1;

template <class Matrix>
ConstView packed(const Matrix& matrix, int64_t samples, int64_t features) {
  static_assert((Matrix::Flags & Eigen::DirectAccessBit) != 0,
                "an expression has no memory to look at: evaluate it into a named matrix first");
  const bool gaps = matrix.innerStride() != 1 || (matrix.outerSize() > 1 && matrix.outerStride() != matrix.innerSize());
  if (gaps)
    throw Error(
        ErrorCode::data, "Eigen matrix",
        "there are gaps between its samples, as in a block of a larger matrix; copy it into a matrix of its own");
  return {matrix.data(), {samples, features}};
}

template <class T>
RowMajorMap<T> map(T* data, const Shape& shape) {
  if (shape.rank() > 2)
    throw Error(ErrorCode::shape, "eigen_map",
                "a matrix has one or two dimensions, got " + shape.text() + "; view the tensor in another shape first");
  return {data, shape.rank() == 2 ? shape[0] : 1, shape.rank() > 0 ? shape[shape.rank() - 1] : 1};
}

}  // namespace eigen_detail

/// A matrix that holds one sample per column, seen as [samples, features]: the same bytes, no copy. Column-major,
/// Eigen's default; or a Map of such. Its elements are float, int32_t, int64_t or uint8_t. Throws Error [data] when
/// they lie with gaps. The matrix must outlive the view.
template <class Matrix>
requires eigen_detail::columns_are_packed<Matrix> ConstView samples_in_columns(const Eigen::DenseBase<Matrix>& matrix) {
  return eigen_detail::packed(matrix.derived(), matrix.cols(), matrix.rows());
}
template <class Matrix>
requires(!eigen_detail::columns_are_packed<Matrix>) void samples_in_columns(const Eigen::DenseBase<Matrix>&) =
    delete;  // row-major: it would be seen transposed; are the samples in its rows?
template <class Matrix>
void samples_in_columns(const Eigen::PlainObjectBase<Matrix>&&) = delete;  // the matrix dies here: name it

/// A matrix that holds one sample per row, as above: Eigen::Matrix<float, Dynamic, Dynamic, Eigen::RowMajor>, or a
/// column vector, whose samples are one number each.
template <class Matrix>
requires eigen_detail::rows_are_packed<Matrix> ConstView samples_in_rows(const Eigen::DenseBase<Matrix>& matrix) {
  return eigen_detail::packed(matrix.derived(), matrix.rows(), matrix.cols());
}
template <class Matrix>
requires(!eigen_detail::rows_are_packed<Matrix>) void samples_in_rows(const Eigen::DenseBase<Matrix>&) =
    delete;  // column-major: it would be seen transposed; are the samples in its columns?
template <class Matrix>
void samples_in_rows(const Eigen::PlainObjectBase<Matrix>&&) = delete;  // the matrix dies here: name it

/// A tensor of one or two dimensions as a row-major matrix, without a copy; [n] is one row, a scalar 1 x 1. Throws
/// Error [shape] for more dimensions, [data] when T is not the element type. The tensor must outlive the map.
template <class T = float>
RowMajorMap<const T> eigen_map(const ConstView& view) {
  return eigen_detail::map<const T>(view.data<T>(), view.shape());
}
template <class T = float>
RowMajorMap<T> eigen_map(const View& view) {
  return eigen_detail::map<T>(view.data<T>(), view.shape());
}
template <class T = float>
RowMajorMap<const T> eigen_map(const Tensor& tensor) {
  return eigen_detail::map<const T>(tensor.data<T>(), tensor.shape());
}
template <class T = float>
RowMajorMap<T> eigen_map(Tensor& tensor) {
  return eigen_detail::map<T>(tensor.data<T>(), tensor.shape());
}
template <class T = float>
void eigen_map(const Tensor&&) = delete;  // the tensor dies here: name it

}  // namespace brisk
