// Shapes, tensors and views: who owns what, and that sizes are checked.
#include "brisk/tensor.h"

#include <gtest/gtest.h>

#include <numeric>
#include "support/error_text.h"

namespace brisk {
namespace {

using test::error_text;

TEST(Shape, CountsAndPrints) {
  const Shape shape = {50, 4, 4};
  EXPECT_EQ(shape.count(), 800);
  EXPECT_EQ(shape.text(), "[50, 4, 4]");
  EXPECT_EQ(shape.dim(-1), 4);
  EXPECT_EQ(shape.dim(0), 50);
  EXPECT_EQ(Shape{}.count(), 1);
  EXPECT_EQ(Shape{}.text(), "[]");
  EXPECT_TRUE((Shape{1, 2} == Shape{1, 2}));
  EXPECT_FALSE((Shape{1, 2} == Shape{1, 2, 1}));
}

TEST(Shape, RefusesWhatCannotBe) {
  EXPECT_EQ(error_text([] { Shape{3, -1}; }), "Error [shape] size -1: a dimension must be at least 0");
  EXPECT_NE(error_text([] { Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}; }).find("at most 8"), std::string::npos);
  EXPECT_NE(error_text([] { Shape{3}.dim(1); }).find("allowed is -1 to 0"), std::string::npos);
  EXPECT_NE(error_text([] { (Shape{int64_t{1} << 40, int64_t{1} << 40}.count()); }).find("63 bits"), std::string::npos);
  EXPECT_EQ((Shape{int64_t{1} << 40, int64_t{1} << 40, 0}.count()), 0);
}

TEST(Tensor, StartsAsAlignedZeros) {
  for (const int64_t n : {1, 17, 1000}) {
    const Tensor t({n});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data<float>()) % 64, 0u);
    EXPECT_EQ(std::accumulate(t.data<float>(), t.data<float>() + n, 0.f), 0.f);
  }
  EXPECT_EQ(Tensor({0, 3}).count(), 0);
}

TEST(Tensor, CopiesElementsAndMovesBytes) {
  Tensor a({2, 2});
  a.data<float>()[3] = 7;
  Tensor b = a;
  b.data<float>()[3] = 8;
  EXPECT_EQ(a.data<float>()[3], 7);
  const float* bytes = b.data<float>();
  Tensor c = std::move(b);
  EXPECT_EQ(c.data<float>(), bytes);
  a = c;
  EXPECT_EQ(a.data<float>()[3], 8);
  EXPECT_NE(a.data<float>(), c.data<float>());
  const Tensor empty;
  const Tensor copy_of_empty = empty;
  EXPECT_EQ(ConstView(copy_of_empty).raw(), nullptr);
}

TEST(Tensor, AdoptsAVectorWithoutCopy) {
  std::vector<int64_t> v = {1, 2, 3, 4, 5, 6};
  const int64_t* bytes = v.data();
  const Tensor t(std::move(v), {2, 3});
  EXPECT_EQ(t.data<int64_t>(), bytes);
  EXPECT_EQ(t.dtype(), DType::i64);
  EXPECT_EQ(error_text([] {
              Tensor(std::vector<float>(5), {2, 3});
            }),
            "Error [shape] [2, 3]: needs 6 elements, the vector has 5");
}

TEST(Tensor, RefusesMoreMemoryThanThereIs) {
  const std::string text = error_text([] { Tensor({int64_t{1} << 45}); });
  EXPECT_EQ(text.rfind("Error [memory] tensor: needs 140,737,488,355,328 bytes, ", 0), 0u) << text;
  EXPECT_NE(error_text([] { Tensor({int64_t{1} << 61}, DType::i64); }).find("63 bits"), std::string::npos);
}

TEST(View, RowsBorrow) {
  std::vector<float> v(12);
  std::iota(v.begin(), v.end(), 0.f);
  const View all = view(v, {4, 3});
  const View part = all.rows(1, 2);
  EXPECT_EQ(part.shape().text(), "[2, 3]");
  part.data<float>()[0] = 50;
  EXPECT_EQ(v[3], 50);
  EXPECT_EQ(all.rows(4, 0).count(), 0);
  EXPECT_EQ(error_text([&] { all.rows(3, 2); }),
            "Error [shape] rows(3, 2): the view [4, 3] has 4 rows; first + count must not exceed them");
  EXPECT_NE(error_text([&] { all.rows(1, INT64_MAX); }).find("4 rows"), std::string::npos);
  EXPECT_NE(error_text([] { ConstView(static_cast<const float*>(nullptr), {}).rows(0, 1); }).find("scalar"),
            std::string::npos);
}

TEST(View, ChecksElementTypeAndCount) {
  std::vector<float> v(3);
  EXPECT_EQ(error_text([&] { view(v, {3}).data<int64_t>(); }),
            "Error [data] data<i64>(): the elements of this view [3] are f32; ask for that type");
  EXPECT_NE(error_text([&] { view(v, {4}); }).find("needs 4 elements, the vector has 3"), std::string::npos);
}

TEST(DType, SizesAndNames) {
  EXPECT_EQ(size_of(DType::f32) + size_of(DType::f16) + size_of(DType::bf16), 8);
  EXPECT_EQ(size_of(DType::i32) + size_of(DType::i64) + size_of(DType::u8), 13);
  EXPECT_STREQ(name(DType::bf16), "bf16");
  EXPECT_EQ(dtype_of<long long>(), DType::i64);
  EXPECT_EQ(gpu(1).text(), "gpu 1");
  EXPECT_EQ(cpu().text(), "cpu");
}

}  // namespace
}  // namespace brisk
