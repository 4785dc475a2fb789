// Batches, samples, their random numbers, and columns in memory.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "brisk/data.h"
#include "data/fill.h"
#include "support/error_text.h"

namespace brisk {
namespace {

using test::error_text;

InMemoryDataset numbered(int64_t count) {
  std::vector<float> x(static_cast<size_t>(2 * count));
  std::iota(x.begin(), x.end(), 0.f);
  std::vector<int64_t> y(static_cast<size_t>(count));
  std::iota(y.begin(), y.end(), 0);
  InMemoryDataset out;
  out.add("input", Tensor(std::move(x), {count, 2}));
  out.add("target", Tensor(std::move(y), {count}));
  return out;
}

std::vector<int64_t> targets(const InMemoryDataset& set) {
  std::vector<int64_t> indices(static_cast<size_t>(set.size()));
  std::iota(indices.begin(), indices.end(), 0);
  Batch batch(set.fields(), set.size());
  set.rows(indices, batch);
  const int64_t* y = batch["target"].data<int64_t>();
  return {y, y + set.size()};
}

TEST(Random, IsPureInSeedEpochIndex) {
  const auto draw = [](uint64_t seed, int64_t epoch, int64_t index) { return Random(seed, epoch, index)(); };
  EXPECT_EQ(draw(1, 2, 3), draw(1, 2, 3));
  std::set<uint32_t> different;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    for (int64_t epoch = 0; epoch < 4; ++epoch) {
      for (int64_t index = 0; index < 4; ++index) different.insert(draw(seed, epoch, index));
    }
  }
  EXPECT_EQ(different.size(), 64u);
}

TEST(Random, IntegersAreEven) {
  Random random(3, 0, 0);
  std::vector<int> counts(7);
  for (int i = 0; i < 70'000; ++i) ++counts[static_cast<size_t>(random.integer(7))];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 5 * 93);
  for (int i = 0; i < 100; ++i) EXPECT_LT(random.integer(INT64_MAX), INT64_MAX);
  EXPECT_EQ(random.integer(1), 0);
  EXPECT_NE(error_text([&] { random.integer(0); }).find("at least 1"), std::string::npos);
}

TEST(Random, ChanceAndRanges) {
  Random random(4, 1, 9);
  int hits = 0;
  for (int i = 0; i < 10'000; ++i) hits += random.chance(0.3);
  EXPECT_NEAR(hits, 3000, 5 * 46);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const float value = random.uniform(-2, 4);
    EXPECT_TRUE(value >= -2 && value < 4);
    sum += value;
  }
  EXPECT_NEAR(sum / 10'000, 1, 5 * 0.0174);
  double squares = 0;
  for (int i = 0; i < 10'000; ++i) squares += std::pow(random.normal(), 2);
  EXPECT_NEAR(squares / 10'000, 1, 5 * std::sqrt(2e-4));
  EXPECT_FALSE(Random(0, 0, 0).chance(-1));
  EXPECT_TRUE(Random(0, 0, 0).chance(2));
}

TEST(Batch, GivesFieldsByName) {
  Batch batch({{"image", {1, 2}}, {"imu", {3}}, {"lane", {}, DType::i64}, {"angle", {1}}}, 4);
  EXPECT_EQ(batch.size(), 0);
  batch.assign(std::vector<int64_t>{7, 8, 9});
  EXPECT_EQ(batch["image"].shape().text(), "[3, 1, 2]");
  EXPECT_EQ(batch["lane"].shape().text(), "[3]");
  EXPECT_EQ(batch["lane"].dtype(), DType::i64);
  EXPECT_EQ(batch.indices()[2], 9);
  EXPECT_EQ(error_text([&] { batch["angel"]; }),
            "Error [data] the batch has no field \"angel\"; it has image, imu, lane, angle (did you mean angle?)");
  EXPECT_EQ(error_text([&] { batch["zzzzz"]; }),
            "Error [data] the batch has no field \"zzzzz\"; it has image, imu, lane, angle");
  EXPECT_NE(error_text([&] { batch.assign(std::vector<int64_t>(5)); }).find("at most 4"), std::string::npos);
  EXPECT_NE(error_text([] { Batch({}, 0); }).find("at least 1"), std::string::npos);
}

TEST(Sample, IsOneRowOfTheBatch) {
  Batch batch({{"a", {2}}, {"b", {}, DType::i64}}, 3);
  batch.assign(std::vector<int64_t>{0, 1, 2});
  Sample sample(batch, 1);
  EXPECT_EQ(sample["a"].shape().text(), "[2]");
  EXPECT_EQ(sample["b"].shape().text(), "[]");
  sample["a"].data<float>()[1] = 5;
  sample["b"].data<int64_t>()[0] = 6;
  EXPECT_EQ(batch["a"].data<float>()[3], 5);
  EXPECT_EQ(batch["b"].data<int64_t>()[1], 6);
  EXPECT_NE(error_text([&] { sample["c"]; }).find("it has a, b"), std::string::npos);
}

TEST(InMemoryDataset, GathersRowsInTheOrderAskedFor) {
  const InMemoryDataset set = numbered(10);
  EXPECT_EQ(set.size(), 10);
  ASSERT_EQ(set.fields().size(), 2u);
  EXPECT_EQ(set.fields()[0].name, "input");
  EXPECT_EQ(set.fields()[0].shape.text(), "[2]");
  EXPECT_EQ(set.fields()[1].dtype, DType::i64);
  Batch batch(set.fields(), 4);
  set.rows(std::vector<int64_t>{9, 0, 3}, batch);
  const float* x = batch["input"].data<float>();
  EXPECT_EQ(std::vector<float>(x, x + 6), (std::vector<float>{18, 19, 0, 1, 6, 7}));
  EXPECT_EQ(batch["target"].data<int64_t>()[0], 9);
  EXPECT_EQ(batch.indices()[1], 0);
  EXPECT_EQ(error_text([&] { set.rows(std::vector<int64_t>{10}, batch); }),
            "Error [data] sample 10 of data set: allowed is 0 to 9");
  Batch other({{"x", {3}}, {"y", {}}}, 4);
  EXPECT_NE(error_text([&] { set.rows(std::vector<int64_t>{0}, other); }).find("not made from"), std::string::npos);
}

TEST(InMemoryDataset, AdoptsAndBorrowsWithoutCopies) {
  std::vector<float> borrowed(6, 1.f);
  InMemoryDataset set;
  set.add("input", view(borrowed, {3, 2}));
  borrowed[2] = 4;
  Batch batch(set.fields(), 1);
  set.rows(std::vector<int64_t>{1}, batch);
  EXPECT_EQ(batch["input"].data<float>()[0], 4);
}

TEST(InMemoryDataset, ReadGivesWhatRowsGives) {
  InMemoryDataset set = numbered(5);
  set.add_pixels("image", Tensor(std::vector<uint8_t>{0, 51, 102, 153, 255}, {5, 1}));
  Batch by_row(set.fields(), 1);
  Batch by_read(set.fields(), 1);
  for (int64_t i = 0; i < 5; ++i) {
    set.rows(std::vector<int64_t>{i}, by_row);
    by_read.assign(std::vector<int64_t>{i});
    Sample sample(by_read, 0);
    Random random(0, 0, i);
    set.read(i, sample, random);
    for (const Field& field : set.fields()) {
      const auto a = by_row[field.name].bytes();
      const auto b = by_read[field.name].bytes();
      EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << field.name;
    }
  }
  EXPECT_EQ(by_row["image"].dtype(), DType::f32);
  EXPECT_EQ(by_row["image"].data<float>()[0], 1.f);
}

TEST(InMemoryDataset, RefusesColumnsThatDoNotFit) {
  InMemoryDataset set = numbered(4);
  EXPECT_EQ(error_text([&] {
              set.add("more", Tensor({5, 2}));
            }),
            "Error [data] \"more\": has 5 samples, but \"input\" has 4");
  EXPECT_NE(error_text([&] { set.add("input", Tensor({4})); }).find("there is a field of this name"),
            std::string::npos);
  EXPECT_NE(error_text([&] { set.add("scalar", Tensor(Shape{})); }).find("a scalar has no samples"), std::string::npos);
  EXPECT_NE(error_text([&] { set.add("", Tensor({4})); }).find("needs a name"), std::string::npos);
  EXPECT_NE(error_text([&] { set.add_pixels("p", Tensor({4})); }).find("these elements are f32"), std::string::npos);
  EXPECT_EQ(set.fields().size(), 2u);
}

TEST(InMemoryDataset, SplitsIntoDisjointPartsThatDependOnTheSeed) {
  const InMemoryDataset all = numbered(10);
  auto [train, test] = all.split({.first = 0.8, .seed = 7});
  EXPECT_EQ(train.size(), 8);
  EXPECT_EQ(test.size(), 2);
  std::vector<int64_t> both = targets(train);
  const std::vector<int64_t> rest = targets(test);
  both.insert(both.end(), rest.begin(), rest.end());
  EXPECT_EQ(std::set<int64_t>(both.begin(), both.end()).size(), 10u);
  EXPECT_EQ(targets(all.split({.first = 0.8, .seed = 7}).first), targets(train));
  EXPECT_NE(targets(all.split({.first = 0.8, .seed = 8}).first), targets(train));
  // A part can be split again.
  auto [a, b] = train.split({.first = 0.5, .seed = 1});
  std::vector<int64_t> again = targets(a);
  const std::vector<int64_t> second = targets(b);
  again.insert(again.end(), second.begin(), second.end());
  const std::vector<int64_t> of_train = targets(train);
  EXPECT_EQ(std::set<int64_t>(again.begin(), again.end()), std::set<int64_t>(of_train.begin(), of_train.end()));
  InMemoryDataset part = train;
  EXPECT_NE(error_text([&] { part.add("z", Tensor({8})); }).find("before split"), std::string::npos);
}

TEST(InMemoryDataset, RefusesEmptyParts) {
  const InMemoryDataset all = numbered(3);
  for (const double first : {0.0, 1.0, -0.5, 1.5, 0.01, 0.99, std::nan("")}) {
    EXPECT_NE(error_text([&] { all.split({.first = first}); }).find("SplitOptions.first"), std::string::npos) << first;
  }
}

TEST(InMemoryDataset, NamesTheFirstNonFiniteValue) {
  std::vector<float> x(1000 * 5);
  x[812 * 5 + 4] = std::nanf("");
  InMemoryDataset set;
  set.add("input", Tensor(std::move(x), {1000, 5}));
  EXPECT_EQ(error_text([&] { set.check_finite(); }), "Error [data] \"input\", sample 812, column 4 is NaN");
  EXPECT_EQ(error_text([] { numbered(3).check_finite(); }), "nothing was thrown");
}

class Scans : public Dataset {
 public:
  int64_t size() const override { return 6000; }
  std::vector<Field> fields() const override { return {{"input", {2}}}; }
  void read(int64_t index, Sample& out, Random& random) const override {
    if (index == 5012) throw std::runtime_error("cannot decode /data/5012.png");
    if (index == 1) out["inputs"];
    if (index == 2) throw 3;
    out["input"].data<float>()[0] = static_cast<float>(index);
    out["input"].data<float>()[1] = random.uniform();
  }
};

// All rows of a batch at once.
bool fill(const Dataset& dataset, const std::vector<int64_t>& indices, Batch& batch, bool abandoned = false) {
  const std::atomic<bool> abandon{abandoned};
  batch.assign(indices);
  int64_t row = 0;
  return data::fill_rows(dataset, 0, 0, batch, row, batch.size(), abandon);
}

TEST(Fill, NamesTheSampleThatCouldNotBeRead) {
  const Scans scans;
  Batch batch(scans.fields(), 2);
  const auto read = [&](const std::vector<int64_t>& indices) { fill(scans, indices, batch); };
  EXPECT_EQ(error_text([&] { read({0, 5012}); }), "Error [data] sample 5012 of Scans: cannot decode /data/5012.png");
  EXPECT_EQ(error_text([&] { read({1}); }),
            "Error [data] sample 1 of Scans: the sample has no field \"inputs\"; it has input (did you mean input?)");
  EXPECT_NE(error_text([&] { read({2}); }).find("sample 2 of Scans"), std::string::npos);
  read({3, 4});
  EXPECT_EQ(batch["input"].data<float>()[2], 4);
}

// A derived class's read() is called, though its base could be gathered without.
class Negated : public InMemoryDataset {
 public:
  void read(int64_t index, Sample& out, Random& random) const override {
    InMemoryDataset::read(index, out, random);
    out["x"].data<float>()[0] *= -1;
  }
};

TEST(Fill, CallsReadOfClassesDerivedFromTheOneInMemory) {
  Negated set;
  set.add("x", Tensor(std::vector<float>{1, 2, 3}, {3}));
  Batch batch(set.fields(), 1);
  EXPECT_TRUE(fill(set, {1}, batch));
  EXPECT_EQ(batch["x"].data<float>()[0], -2);
  EXPECT_FALSE(fill(set, {1}, batch, true));
}

TEST(InMemoryDataset, ViewsOfNothingAreRefusedAndIndicesChecked) {
  InMemoryDataset set;
  Tensor moved(Shape{4, 2});
  set.add("kept", std::move(moved));
  EXPECT_THROW(set.add("null", ConstView(static_cast<const float*>(nullptr), {4, 2})), Error);
  EXPECT_THROW(set.add("moved", std::move(moved)), Error);
  EXPECT_NO_THROW(InMemoryDataset().add("none", ConstView(static_cast<const float*>(nullptr), {0, 2})));
  const InMemoryDataset part = set.split({.first = 0.5}).first;
  Batch batch(part.fields(), 1);
  batch.assign(std::vector<int64_t>{0});
  Sample sample(batch, 0);
  Random random(0, 0, 0);
  for (const int64_t index : {int64_t{-1}, int64_t{2}}) EXPECT_THROW(part.read(index, sample, random), Error) << index;
}

}  // namespace
}  // namespace brisk
