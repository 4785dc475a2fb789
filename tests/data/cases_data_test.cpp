// Cases from other libraries' histories, each named by its id in the case table.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "brisk/data.h"
#include "data/batcher.h"
#include "data/idx_file.h"
#include "data/order.h"
#include "files.h"

namespace brisk::data {
namespace {

using test::big_endian;
using test::counting;
using test::gzip;
using test::idx_header;

std::string reason_of(const std::string& images, const std::string& labels) {
  try {
    idx(images, labels);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::file);
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Open train-images.gz with the raw reader; and a raw file with the gz reader. There is one reader: it decompresses
// automatically, so it needs no error 'file is gzip', and 1f 8b 08 08 is never taken for a magic number.
TEST(Cases, DA01_gzip_magic_529205256) {
  static_assert(529205256 == 0x1f8b0808);
  const test::TemporaryFolder folder;
  const std::string raw = idx_header({6, 28, 28}) + counting(6 * 784);
  const std::string packed = gzip(raw);
  ASSERT_EQ(packed.substr(0, 4), big_endian(529205256));
  const std::string labels = folder.put("train-labels", idx_header({6}) + counting(6));

  for (const std::string& path : {folder.put("train-images.gz", packed),    // gzip, and called so
                                  folder.put("train-images", packed),       // gzip, called as a raw file
                                  folder.put("raw/train-images", raw),      // raw
                                  folder.put("raw/train-images.gz", raw)})  // raw, called as gzip
  {
    EXPECT_EQ(reason_of(path, labels), "no error") << path;
    const Tensor images = read_idx_bytes(path);
    ASSERT_EQ(images.shape().text(), "[6, 28, 28]") << path;
    EXPECT_TRUE(std::equal(images.data<uint8_t>(), images.data<uint8_t>() + images.count(),
                           reinterpret_cast<const uint8_t*>(raw.data()) + 16))
        << path;
  }
}

// IDX with count 60000 but data for 6; header 0..15 bytes; little-endian header; dims 0; dims product > 2^63; labels
// count != images count; wrong type code; extra bytes.
// Each refused with the reason; expected size = header + product (checked multiply) and equals file size.
class CasesDA03 : public testing::Test {
 protected:
  std::string images(const std::string& bytes) {
    const std::string plain = reason_of(folder_.put("images", bytes), labels_);
    const std::string packed = reason_of(folder_.put("images.gz", gzip(bytes)), labels_);
    EXPECT_NE(packed, "no error");
    return plain;
  }
  test::TemporaryFolder folder_;
  std::string labels_ = folder_.put("labels", idx_header({6}) + counting(6));
};

TEST_F(CasesDA03, DA03_count_60000_but_data_for_6) {
  const std::string reason = images(idx_header({60000, 28, 28}) + counting(6 * 784));
  EXPECT_TRUE(
      contains(reason, "[60000, 28, 28]: 47,040,016 bytes expected (header 16 + 47,040,000), the file has 4,720"))
      << reason;
}

TEST_F(CasesDA03, DA03_header_0_to_15_bytes) {
  const std::string header = idx_header({6, 28, 28});
  for (size_t bytes = 0; bytes <= 15; ++bytes) {
    const std::string reason = images(header.substr(0, bytes));
    EXPECT_TRUE(contains(reason, "the IDX header is cut: ")) << reason;
    EXPECT_TRUE(contains(reason, bytes < 4 ? "4 bytes expected at least" : "16 bytes expected")) << reason;
    EXPECT_TRUE(contains(reason, "there are " + std::to_string(bytes))) << reason;
  }
}

TEST_F(CasesDA03, DA03_little_endian_header) {
  std::string header = idx_header({6, 28, 28});
  for (size_t word = 0; word < header.size(); word += 4) std::reverse(header.begin() + word, header.begin() + word + 4);
  const std::string reason = images(header + counting(6 * 784));
  EXPECT_TRUE(contains(reason, "begins with 03 08 00 00: a little-endian header")) << reason;
}

TEST_F(CasesDA03, DA03_dims_0) {
  for (const auto& sizes : {std::vector<uint32_t>{0, 28, 28}, {6, 0, 28}, {6, 28, 0}, {0, 0, 0}}) {
    const std::string reason = images(idx_header(sizes));
    EXPECT_TRUE(contains(reason, "every dimension must be at least 1")) << reason;
  }
}

TEST_F(CasesDA03, DA03_dims_product_above_2_to_the_63) {
  const std::string reason = images(idx_header({UINT32_MAX, UINT32_MAX, UINT32_MAX}) + counting(784));
  EXPECT_TRUE(contains(reason, "[4294967295, 4294967295, 4294967295], whose product does not fit 63 bits")) << reason;
  // Exactly 2^63, and the largest product below it, to which no header can be added.
  EXPECT_TRUE(contains(images(idx_header({1u << 31, 1u << 31, 2})), "does not fit 63 bits"));
  // 2^63 - 1 = 7^2 x 73 x 127 x 337 x 92737 x 649657
  const std::string most = images(idx_header({7 * 7 * 73 * 127, 337 * 92737, 649657}));
  EXPECT_TRUE(contains(most, "whose size does not fit 63 bits")) << most;
}

TEST_F(CasesDA03, DA03_labels_count_differs_from_images_count) {
  const std::string path = folder_.put("images", idx_header({5, 2, 2}) + counting(20));
  const std::string reason = reason_of(path, labels_);
  EXPECT_TRUE(contains(reason, "has 5 images, but ")) << reason;
  EXPECT_TRUE(contains(reason, " has 6 labels")) << reason;
}

TEST_F(CasesDA03, DA03_wrong_type_code) {
  for (const int type : {0x00, 0x07, 0x09, 0x0B, 0x0C, 0x0D, 0x0E, 0xFF}) {
    const std::string reason = images(idx_header({6, 28, 28}, static_cast<char>(type)) + counting(6 * 784));
    EXPECT_TRUE(contains(reason, "type code 0x")) << reason;
    EXPECT_TRUE(contains(reason, "allowed is 0x08")) << reason;
  }
}

TEST_F(CasesDA03, DA03_extra_bytes) {
  const std::string reason = images(idx_header({6, 28, 28}) + counting(6 * 784 + 1));
  EXPECT_TRUE(contains(reason, "4,720 bytes expected (header 16 + 4,704), the file has 4,721")) << reason;
}

// Record order for epochs 0,1 with seeds 1,2: 4 different permutations; epoch e seed s reproducible; ranks agree on the
// permutation.
TEST(Cases, DA11_order_changes_with_epoch_and_seed) {
  constexpr int64_t kSize = 20;
  InMemoryDataset set;
  set.add("x", Tensor({kSize}));
  const auto recorded = [&](uint64_t seed, int64_t epoch, int64_t batch) {
    Batcher batcher(set, {.batch = batch, .seed = seed, .shuffle = true});
    batcher.seek({epoch, 0});
    std::vector<int64_t> order;
    while (const Batch* b = batcher.next()) order.insert(order.end(), b->indices().begin(), b->indices().end());
    return order;
  };
  std::vector<int64_t> all(kSize);
  std::iota(all.begin(), all.end(), 0);
  std::set<std::vector<int64_t>> different;
  for (const uint64_t seed : {1, 2}) {
    for (const int64_t epoch : {0, 1}) {
      const std::vector<int64_t> order = recorded(seed, epoch, 7);
      EXPECT_TRUE(std::is_permutation(order.begin(), order.end(), all.begin(), all.end()));
      EXPECT_EQ(recorded(seed, epoch, 7), order);
      // A rank takes its places from the same permutation, whatever its batch.
      EXPECT_EQ(recorded(seed, epoch, 3), order);
      const Order on_another_rank(seed, epoch, kSize);
      for (int64_t i = 0; i < kSize; ++i) EXPECT_EQ(on_another_rank[i], order[static_cast<size_t>(i)]);
      different.insert(order);
    }
  }
  EXPECT_EQ(different.size(), 4u);
}

}  // namespace
}  // namespace brisk::data
