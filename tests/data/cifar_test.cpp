// CIFAR's binary files: what they hold is delivered, and nothing else is taken for them.
#include <gtest/gtest.h>

#include <cstdlib>

#include "brisk/data.h"
#include "files.h"

namespace brisk::data {
namespace {

// Records whose pixels count on from their label.
std::string records(const std::vector<std::vector<int>>& labels) {
  std::string out;
  for (const std::vector<int>& bytes : labels) {
    for (const int byte : bytes) out += static_cast<char>(byte);
    for (int i = 0; i < 3072; ++i) out += static_cast<char>(bytes.back() + i);
  }
  return out;
}

class Cifar : public testing::Test {
 protected:
  void put10(const std::string& below = "") {
    for (int i = 1; i <= 5; ++i) {
      folder_.put(below + "data_batch_" + std::to_string(i) + ".bin", records({{i}, {9 - i}}));
    }
    folder_.put(below + "test_batch.bin", records({{0}, {9}, {3}}));
  }
  std::string reason10() const {
    try {
      cifar10(folder_.path());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::file);
      return error.what();
    }
    return "no error";
  }
  test::TemporaryFolder folder_;
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void expect_cifar10(const TrainTest& sets) {
  ASSERT_EQ(sets.train.size(), 10);
  ASSERT_EQ(sets.test.size(), 3);
  const std::vector<Field> fields = sets.train.fields();
  ASSERT_EQ(fields.size(), 2u);
  EXPECT_EQ(fields[0].shape.text(), "[3, 32, 32]");
  EXPECT_EQ(fields[0].dtype, DType::f32);
  EXPECT_EQ(fields[1].dtype, DType::i64);
  Batch batch(fields, 10);
  const std::vector<int64_t> all = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  sets.train.rows(all, batch);
  const int64_t expected[] = {1, 8, 2, 7, 3, 6, 4, 5, 5, 4};
  for (int64_t row = 0; row < 10; ++row) {
    const int64_t label = batch["target"].data<int64_t>()[row];
    EXPECT_EQ(label, expected[row]);
    for (int64_t i = 0; i < 3072; ++i) {
      const float value = batch["input"].data<float>()[row * 3072 + i];
      ASSERT_EQ(value, static_cast<float>((label + i) % 256) / 255.0f);
    }
  }
}

TEST_F(Cifar, ReadsAllFilesInTheirOrder) {
  put10();
  expect_cifar10(cifar10(folder_.path()));
}

TEST_F(Cifar, ReadsTheFolderBelowAndTheEnvironment) {
  put10("cifar-10-batches-bin/");
  expect_cifar10(cifar10(folder_.path()));
  const char* before = std::getenv("BRISK_DATA");
  const std::string kept = before ? before : "";
  setenv("BRISK_DATA", folder_.path().c_str(), 1);
  expect_cifar10(cifar10());
  unsetenv("BRISK_DATA");
  EXPECT_THROW(cifar10(), Error);
  if (before) setenv("BRISK_DATA", kept.c_str(), 1);
}

TEST_F(Cifar, ReadsGzip) {
  put10();
  std::filesystem::remove(folder_.path() + "/data_batch_3.bin");
  folder_.put("data_batch_3.bin.gz", test::gzip(records({{3}, {6}})));
  expect_cifar10(cifar10(folder_.path()));
  folder_.put("data_batch_3.bin.gz", test::gzip(records({{3}, {6}}) + "x"));
  EXPECT_TRUE(contains(reason10(), "has 6,147 bytes; cifar10 needs a whole number of records of 3,073 bytes"));
}

TEST_F(Cifar, RefusesWrongSizes) {
  for (const int64_t bytes : {0, 1, 3072, 3074, 6145, 6147}) {
    put10();
    const std::string content = records({{1}, {2}, {3}}).substr(0, static_cast<size_t>(bytes));
    const std::string path = folder_.put("data_batch_4.bin", content);
    const std::string reason = reason10();
    EXPECT_TRUE(contains(reason, path)) << reason;
    EXPECT_TRUE(contains(reason, "needs a whole number of records of 3,073 bytes, at least one")) << reason;
  }
}

TEST_F(Cifar, RefusesLabelsOutOfRange) {
  for (const int label : {10, 255}) {
    put10();
    folder_.put("test_batch.bin", records({{9}, {label}}));
    const std::string reason = reason10();
    EXPECT_TRUE(contains(reason, "record 1: label byte 0 is " + std::to_string(label) + ", allowed is 0 to 9"))
        << reason;
  }
}

TEST_F(Cifar, SaysWhatIsMissingAndWhere) {
  put10();
  std::filesystem::remove(folder_.path() + "/data_batch_5.bin");
  const std::string reason = reason10();
  EXPECT_TRUE(contains(reason, "data_batch_5.bin, test_batch.bin (plain or .gz) are not together in any of: "))
      << reason;
  EXPECT_TRUE(contains(reason, folder_.path() + "/cifar-10-batches-bin")) << reason;
}

TEST_F(Cifar, Reads100WithFineLabels) {
  folder_.put("train.bin", records({{0, 99}, {19, 0}, {4, 50}}));
  folder_.put("cifar-100-binary/train.bin", "damaged");
  folder_.put("test.bin", records({{7, 8}}));
  const TrainTest sets = cifar100(folder_.path());
  ASSERT_EQ(sets.train.size(), 3);
  ASSERT_EQ(sets.test.size(), 1);
  Batch batch(sets.train.fields(), 3);
  const std::vector<int64_t> all = {0, 1, 2};
  sets.train.rows(all, batch);
  const int64_t* labels = batch["target"].data<int64_t>();
  EXPECT_EQ(std::vector<int64_t>(labels, labels + 3), (std::vector<int64_t>{99, 0, 50}));
  EXPECT_EQ(batch["input"].data<float>()[0], 99.0f / 255.0f);

  folder_.put("test.bin", records({{20, 8}}));
  EXPECT_THROW(cifar100(folder_.path()), Error);
  folder_.put("test.bin", records({{19, 100}}));
  EXPECT_THROW(cifar100(folder_.path()), Error);
  folder_.put("test.bin", records({{19}}));  // CIFAR-10's records
  EXPECT_THROW(cifar100(folder_.path()), Error);
}

}  // namespace
}  // namespace brisk::data
