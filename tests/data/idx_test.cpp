// IDX files, plain and gzip: what is read, and what is refused with its reason.
#include <gtest/gtest.h>

#include "brisk/data.h"
#include "data/idx_file.h"
#include "files.h"

namespace brisk::data {
namespace {

using test::counting;
using test::gzip;
using test::idx_header;

class Idx : public testing::Test {
 protected:
  std::string reason(const std::string& bytes) {
    const std::string path = folder_.put("file", bytes);
    try {
      read_idx_bytes(path);
    } catch (const Error& error) {
      const std::string head = "Error [file] " + path + ": ";
      const std::string text = error.what();
      EXPECT_EQ(text.rfind(head, 0), 0u) << text;
      return text.substr(head.size());
    }
    return "no error";
  }
  test::TemporaryFolder folder_;
};

TEST_F(Idx, ReadsImagesAndLabels) {
  const std::string images = folder_.put("images", idx_header({3, 2, 2}) + counting(12));
  const std::string labels = folder_.put("labels", gzip(idx_header({3}) + std::string{7, 8, 9}));
  const InMemoryDataset set = idx(images, labels);
  ASSERT_EQ(set.size(), 3);
  EXPECT_EQ(set.fields()[0].name, "input");
  EXPECT_EQ(set.fields()[0].shape.text(), "[1, 2, 2]");
  EXPECT_EQ(set.fields()[0].dtype, DType::f32);
  EXPECT_EQ(set.fields()[1].name, "target");
  EXPECT_EQ(set.fields()[1].shape.text(), "[]");
  EXPECT_EQ(set.fields()[1].dtype, DType::i64);
  Batch batch(set.fields(), 1);
  set.rows(std::vector<int64_t>{2}, batch);
  EXPECT_EQ(batch["input"].data<float>()[3], 11 / 255.f);
  EXPECT_EQ(batch["target"].data<int64_t>()[0], 9);
}

TEST_F(Idx, KeepsOtherShapes) {
  const std::string colour = folder_.put("colour", idx_header({2, 3, 2, 2}) + counting(24));
  EXPECT_EQ(read_idx_bytes(colour, true).shape().text(), "[2, 3, 2, 2]");
  const std::string rows = folder_.put("rows", idx_header({2, 5}) + counting(10));
  EXPECT_EQ(read_idx_bytes(rows, true).shape().text(), "[2, 5]");
}

TEST_F(Idx, ReadsSeveralGzipMembersAsOneFile) {
  const std::string path = folder_.put("two", gzip(idx_header({4})) + gzip(counting(4)));
  const Tensor tensor = read_idx_bytes(path);
  EXPECT_EQ(tensor.data<uint8_t>()[3], 3);
}

TEST_F(Idx, RefusesDamagedGzip) {
  std::string whole = gzip(idx_header({2000}) + std::string(2000, 'a'));
  EXPECT_NE(reason(whole.substr(0, whole.size() - 1)).find("the gzip data ends too early"), std::string::npos);
  EXPECT_NE(reason(whole.substr(0, whole.size() / 2)).find("the gzip data ends too early"), std::string::npos);
  EXPECT_NE(reason(whole.substr(0, 4)).find("the gzip data ends too early"), std::string::npos);
  EXPECT_NE(reason(whole + "tail").find("extra bytes follow"), std::string::npos);
  whole[whole.size() - 6] ^= 1;  // the checksum
  EXPECT_NE(reason(whole).find("the gzip data is damaged"), std::string::npos);
}

// A bomb: megabytes behind a header that declares four bytes, and a header that declares what cannot be.
TEST_F(Idx, StopsUnpackingAtTheDeclaredSize) {
  EXPECT_EQ(
      reason(gzip(idx_header({4}) + std::string(1 << 24, '\0'))),
      "the header declares the shape [4]: 12 bytes expected (header 8 + 4), the file holds more; it was not unpacked "
      "further");
  EXPECT_EQ(
      reason(gzip(idx_header({4}) + counting(5))),
      "the header declares the shape [4]: 12 bytes expected (header 8 + 4), the file holds more; it was not unpacked "
      "further");
  const std::string small = gzip(idx_header({4'000'000'000, 1000}) + counting(4));
  EXPECT_NE(reason(small).find("which cannot unpack to that"), std::string::npos) << reason(small);
  EXPECT_NE(
      reason(gzip(idx_header({500}) + counting(4))).find("508 bytes expected (header 8 + 500), the file holds only 12"),
      std::string::npos);
}

TEST_F(Idx, RefusesRanksAndOtherContents) {
  EXPECT_NE(reason("P5 28 28").find("begins with 50 35 20 32; an IDX file begins with 00 00"), std::string::npos);
  EXPECT_NE(reason(idx_header({})).find("0 dimensions; allowed are 1 to 7"), std::string::npos);
  EXPECT_NE(reason(idx_header({1, 1, 1, 1, 1, 1, 1, 1}) + "a").find("8 dimensions"), std::string::npos);
  EXPECT_NE(reason("").find("4 bytes expected at least, there are 0"), std::string::npos);
}

TEST_F(Idx, RefusesLabelsOfTwoDimensions) {
  const std::string images = folder_.put("images", idx_header({1, 1, 1}) + "a");
  const std::string labels = folder_.put("labels", idx_header({1, 1}) + "a");
  try {
    idx(images, labels);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("labels must have one dimension, the file has the shape [1, 1]"),
              std::string::npos);
  }
}

TEST_F(Idx, NamesFilesThatCannotBeOpened) {
  for (const std::string& path : {folder_.path() + "/absent", folder_.path()}) {
    try {
      read_idx_bytes(path);
      FAIL();
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_EQ(text.rfind("Error [file] " + path + ": ", 0), 0u) << text;
      EXPECT_TRUE(text.find("No such file") != std::string::npos ||
                  text.find("not a regular file") != std::string::npos);
    }
  }
}

class FashionMnist : public Idx {
 protected:
  void put_four(const std::string& folder, const std::string& ending) {
    for (const auto& [name, count] : {std::pair{"train", 5}, {"t10k", 2}}) {
      const uint32_t n = static_cast<uint32_t>(count);
      const std::string images = idx_header({n, 28, 28}) + std::string(n * 784, 'x');
      const std::string labels = idx_header({n}) + std::string(n, '\1');
      const bool packed = ending == ".gz";
      folder_.put(folder + name + "-images-idx3-ubyte" + ending, packed ? gzip(images) : images);
      folder_.put(folder + name + "-labels-idx1-ubyte" + ending, packed ? gzip(labels) : labels);
    }
  }
  void TearDown() override { unsetenv("BRISK_DATA"); }
};

TEST_F(FashionMnist, ReadsAFolderPlainOrPacked) {
  for (const std::string ending : {"", ".gz"}) {
    put_four("set" + ending + "/", ending);
    auto [train, test] = fashion_mnist(folder_.path() + "/set" + ending);
    EXPECT_EQ(train.size(), 5);
    EXPECT_EQ(test.size(), 2);
    EXPECT_EQ(train.fields()[0].shape.text(), "[1, 28, 28]");
    EXPECT_EQ(train.name(), "train");
  }
}

TEST_F(FashionMnist, LooksInBriskDataAndItsSubfolder) {
  put_four("fashion-mnist/", ".gz");
  setenv("BRISK_DATA", folder_.path().c_str(), 1);
  EXPECT_EQ(fashion_mnist().train.size(), 5);
  setenv("BRISK_DATA", (folder_.path() + "/fashion-mnist").c_str(), 1);
  EXPECT_EQ(fashion_mnist().test.size(), 2);
}

TEST_F(FashionMnist, ListsWhereItLooked) {
  try {
    fashion_mnist(folder_.path());
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.code(), ErrorCode::file);
    EXPECT_NE(text.find("not together in any of: " + folder_.path() + ";"), std::string::npos) << text;
    EXPECT_NE(text.find("dataset-fashion-mnist"), std::string::npos);
  }
  const std::string system = "/usr/share/datasets/fashion-mnist";
  if (std::filesystem::exists(system)) return;  // then something is found
  setenv("BRISK_DATA", folder_.path().c_str(), 1);
  try {
    fashion_mnist();
    FAIL();
  } catch (const Error& error) {
    const std::string tried = folder_.path() + ", " + folder_.path() + "/fashion-mnist, " + system + ";";
    EXPECT_NE(std::string(error.what()).find(tried), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace brisk::data
