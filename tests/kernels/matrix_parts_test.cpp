// Parts of the matrix kernels that the host can call under the emulation: where chunks lie in shared memory, division.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>

#include "kernels/matrix/launcher.h"

namespace brisk::kernels {
namespace {

/// Chunks that eight threads write or read at once lie in the eight different quarters of a line of banks.
template <int kChunks>
void expect_spread() {
  for (int first = 0; first < 32 * kChunks; first += 8) {  // in the order of threads: along rows
    unsigned along = 0;
    for (int i = first; i < first + 8; ++i) along |= 1u << swizzle<kChunks>(i / kChunks, i % kChunks) % 8;
    EXPECT_EQ(along, 255u);
  }
  for (int row = 0; row < 32; row += 8) {  // one chunk of eight rows
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      unsigned down = 0;
      for (int i = row; i < row + 8; ++i) down |= 1u << swizzle<kChunks>(i, chunk) % 8;
      EXPECT_EQ(down, 255u);
    }
  }
}

TEST(MatrixParts, ChunksLieInDifferentBanks) {
  expect_spread<4>();
  expect_spread<8>();
  expect_spread<16>();
  expect_spread<32>();
}

TEST(MatrixParts, SharedMemoryFitsWorkstationCards) {
  EXPECT_LE((kSharedBytes<TensorCores<__half, 128, 128, 64, 64, true, true>>), 99 * 1024);
  EXPECT_LE((kSharedBytes<Lanes<true, true>>), 99 * 1024);
  EXPECT_GE(kStages - 1, 3) << "stages under way";
}

TEST(MatrixParts, FastDivideIsExact) {
  std::mt19937 engine(7);
  for (int64_t by : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{7}, int64_t{64}, int64_t{641}, int64_t{65537},
                     int64_t{1} << 30, int64_t{INT32_MAX} - 1, int64_t{INT32_MAX}}) {
    const FastDivide divide(by);
    for (int i = 0; i < 2000; ++i) {
      int64_t n = engine() >> 1;
      if (i % 4 == 1) n = std::min<int64_t>(n / by * by, INT32_MAX);
      if (i % 4 == 2) n = std::max<int64_t>(n / by * by - 1, 0);
      if (i == 3) n = INT32_MAX;
      ASSERT_EQ(divide.quotient(static_cast<int>(n)), n / by) << n << " / " << by;
    }
  }
}

}  // namespace
}  // namespace brisk::kernels
