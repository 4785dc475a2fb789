// brisk/eigen.h: what is seen without a copy, what is refused, and a program's own loop on Eigen's matrices.
#include "brisk/eigen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "brisk/brisk.h"

namespace {

// ---- the own loop, as a program writes it

using namespace brisk;

double last_loss = 0;

void train(const Eigen::MatrixXf& X, const int64_t* labels, int64_t n) {  // one sample per column
  Model model([](Var x) { return linear(relu(linear(x, 64)), 3); }, {X.rows()});
  Step step(model, cross_entropy(), sgd({.learning_rate = 0.1, .momentum = 0.9}), {.accumulate = 2, .batch = 32});
  ConstView x = samples_in_columns(X);  // [n, features], no copy; says what it means
  ConstView y(labels, {n});             // [n] i64, no copy
  for (int epoch = 0; epoch < 20; ++epoch) {
    for (int64_t i = 0; i < n; i += 32) {
      const int64_t rows = std::min<int64_t>(32, n - i);  // a short tail gets its own plan: exact, not padded
      step.run(x.rows(i, rows), y.rows(i, rows));         // no allocation, no synchronisation
    }
    step.flush();                      // an open window steps now
    const StepTotals t = step.read();  // the only synchronisation: exact means since last read
    std::printf("%lld updates, loss %.4f, lr %g\n", (long long)t.clock.updates, t.loss, t.learning_rate);
    last_loss = t.loss;
    EXPECT_EQ(t.samples, n);
    EXPECT_EQ(t.clock.updates, 2 * (epoch + 1));
  }
  const Tensor w = model.parameter("fc1.weight");      // a copy, PyTorch's layout
  std::cout << eigen_map(w).colwise().norm() << '\n';  // row-major Eigen::Map, no further copy
}

TEST(Eigen, OwnLoop) {
  const int64_t n = 100;
  Eigen::MatrixXf samples(5, n);
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < 5; ++k) samples(k, i) = static_cast<float>((i * 31 + k * 17) % 23) / 23.0f - 0.5f;
    labels.push_back(samples(0, i) > 0.1f ? 2 : samples(1, i) > 0 ? 1 : 0);
  }
  train(samples, labels.data(), n);
  EXPECT_LT(last_loss, 0.5);  // ln 3 = 1.1 at the start
}

// ---- views

using RowMajorMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

TEST(Eigen, SamplesAreSeenWhereTheyLie) {
  Eigen::MatrixXf columns(2, 3);  // three samples of two features
  columns << 1, 2, 3, 10, 20, 30;
  const ConstView by_column = samples_in_columns(columns);
  EXPECT_EQ(by_column.raw(), columns.data());
  EXPECT_EQ(by_column.shape(), (Shape{3, 2}));
  EXPECT_EQ(by_column.rows(1, 1).data<float>()[0], 2);
  EXPECT_EQ(by_column.rows(1, 1).data<float>()[1], 20);
  const RowMajorMatrix rows = columns.transpose();
  const ConstView by_row = samples_in_rows(rows);
  EXPECT_EQ(by_row.raw(), rows.data());
  EXPECT_EQ(by_row.shape(), (Shape{3, 2}));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(by_row.data<float>()[i], by_column.data<float>()[i]);
}

TEST(Eigen, VectorsAndMapsAndLabels) {
  const Eigen::VectorXf targets = Eigen::VectorXf::LinSpaced(4, 0, 3);
  EXPECT_EQ(samples_in_rows(targets).shape(), (Shape{4, 1}));
  EXPECT_EQ(samples_in_columns(targets).shape(), (Shape{1, 4}));
  const Eigen::RowVectorXf row = targets.transpose();
  EXPECT_EQ(samples_in_columns(row).shape(), (Shape{4, 1}));
  EXPECT_EQ(samples_in_rows(row).shape(), (Shape{1, 4}));
  std::vector<float> memory(6, 7);
  EXPECT_EQ(samples_in_columns(Eigen::Map<Eigen::MatrixXf>(memory.data(), 2, 3)).raw(), memory.data());
  const Eigen::Matrix<int64_t, Eigen::Dynamic, 1> labels = Eigen::Matrix<int64_t, Eigen::Dynamic, 1>::Ones(3);
  EXPECT_EQ(samples_in_rows(labels).dtype(), DType::i64);
  const Eigen::MatrixXf none(2, 0);
  EXPECT_EQ(samples_in_columns(none).shape(), (Shape{0, 2}));
}

TEST(Eigen, BlocksWithGapsAreRefused) {
  const Eigen::MatrixXf matrix = Eigen::MatrixXf::Ones(4, 3);
  EXPECT_EQ(samples_in_columns(matrix.middleCols(1, 2)).raw(), matrix.data() + 4);  // whole columns: no gap
  try {
    samples_in_columns(matrix.topRows(2));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::data);
    EXPECT_NE(std::string(error.what()).find("gaps between its samples"), std::string::npos);
  }
  EXPECT_THROW(samples_in_rows(matrix.row(1).transpose()), Error);  // every fourth element
}

template <class M>
concept SeenByColumn = requires(M&& m) {
  { samples_in_columns(std::forward<M>(m)) } -> std::same_as<ConstView>;
};
template <class M>
concept SeenByRow = requires(M&& m) {
  { samples_in_rows(std::forward<M>(m)) } -> std::same_as<ConstView>;
};
template <class T>
concept Mapped = requires(T&& t) {
  eigen_map(std::forward<T>(t)).rows();
};

// What would be seen transposed, and what dies at the end of the line, does not compile.
static_assert(SeenByColumn<Eigen::MatrixXf&> && SeenByColumn<const Eigen::MatrixXf&>);
static_assert(SeenByColumn<Eigen::Map<Eigen::MatrixXf>>);
static_assert(!SeenByColumn<Eigen::MatrixXf> && !SeenByColumn<const Eigen::MatrixXf>);
static_assert(!SeenByColumn<RowMajorMatrix&> && !SeenByColumn<Eigen::Map<RowMajorMatrix>>);
static_assert(SeenByRow<RowMajorMatrix&> && SeenByRow<Eigen::Map<RowMajorMatrix>>);
static_assert(!SeenByRow<RowMajorMatrix> && !SeenByRow<Eigen::MatrixXf&>);
static_assert(SeenByRow<Eigen::VectorXf&> && !SeenByRow<Eigen::VectorXf>);
static_assert(Mapped<Tensor&> && Mapped<const Tensor&> && Mapped<ConstView> && Mapped<View&>);
static_assert(!Mapped<Tensor> && !Mapped<const Tensor>);

// ---- maps

TEST(Eigen, TensorsAsMatrices) {
  Tensor tensor(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor& read_only = tensor;
  EXPECT_EQ(eigen_map(read_only).data(), read_only.data<float>());
  EXPECT_EQ(eigen_map(read_only)(1, 0), 4);
  EXPECT_EQ(eigen_map(read_only).colwise().sum()(2), 9);
  eigen_map(tensor)(0, 1) = 20;
  EXPECT_EQ(tensor.data<float>()[1], 20);
  const Tensor vector(std::vector<float>{1, 2, 3}, {3});
  EXPECT_EQ(eigen_map(vector).rows(), 1);
  EXPECT_EQ(eigen_map(vector).cols(), 3);
  EXPECT_EQ(eigen_map(ConstView(vector))(0, 2), 3);
  const std::vector<int64_t> labels = {3, 4};
  EXPECT_EQ(eigen_map<int64_t>(view(labels, {2}))(0, 1), 4);
  EXPECT_THROW(eigen_map(view(labels, {2})), Error);
}

TEST(Eigen, MoreDimensionsAreRefused) {
  const Tensor tensor({2, 3, 4});
  try {
    eigen_map(tensor);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "Error [shape] eigen_map: a matrix has one or two dimensions, got [2, 3, 4]; view the tensor in another "
              "shape first");
  }
}

}  // namespace
