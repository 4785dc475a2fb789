// What lanes of a warp do together: shuffles, votes, matrices. The layouts of matrices are stated here a second time,
// as strides of (lane, value) over the matrix.
#include <cstring>
#include <random>

#include "kernels/common/async_copy.h"
#include "kernels/common/mma.h"
#include "simt/device_buffer.h"
#include "simt/sanitizer.h"

namespace brisk::simt {
namespace {

using kernels::launch;

__global__ void shuffle_lanes(int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  int* row = out + lane * 5;
  row[0] = __shfl_xor_sync(~0u, lane, 5);
  row[1] = __shfl_down_sync(~0u, lane, 3);
  row[2] = __shfl_up_sync(~0u, lane, 3, 8);
  row[3] = __shfl_sync(~0u, lane, 9, 16);
  row[4] = static_cast<int>(__ballot_sync(~0u, lane % 3 == 0));
}

TEST(Warp, ShufflesAndVotes) {
  for_each_schedule([] {
    const DeviceBuffer<int> out(32 * 5);
    check(launch(shuffle_lanes, 1, 32, 0, nullptr, out.data()));
    const std::vector<int> got = out.download();
    for (int lane = 0; lane < 32; ++lane) {
      const int* row = &got[static_cast<size_t>(lane) * 5];
      EXPECT_EQ(row[0], lane ^ 5);
      EXPECT_EQ(row[1], lane + 3 < 32 ? lane + 3 : lane);
      EXPECT_EQ(row[2], lane % 8 >= 3 ? lane - 3 : lane);
      EXPECT_EQ(row[3], lane / 16 * 16 + 9);
      EXPECT_EQ(static_cast<unsigned>(row[4]), 0x49249249u);
    }
  });
}

__global__ void halves_of_a_warp(int* out) {
  const unsigned mask = threadIdx.x < 16 ? 0xffffu : 0xffff0000u;
  int sum = static_cast<int>(threadIdx.x);
  for (int distance = 8; distance > 0; distance /= 2) sum += __shfl_xor_sync(mask, sum, distance);
  out[threadIdx.x] = sum;
}

TEST(Warp, PartsOfAWarpMeetApart) {
  for_each_schedule([] {
    const DeviceBuffer<int> out(32);
    check(launch(halves_of_a_warp, 1, 32, 0, nullptr, out.data()));
    const std::vector<int> got = out.download();
    EXPECT_EQ(got[3], 120);
    EXPECT_EQ(got[20], 376);
  });
}

__global__ void ticket(int* blocks, unsigned* next, int* last) {
  if (threadIdx.x != 0) return;
  blocks[blockIdx.x] = static_cast<int>(blockIdx.x);
  __threadfence();
  if (atomicInc(next, gridDim.x - 1) != gridDim.x - 1) return;
  __threadfence();
  int sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += __ldcg(blocks + i);
  *last = sum;
}

TEST(Grid, TheLastBlockSeesAll) {
  for_each_schedule([] {
    const DeviceBuffer<int> blocks(7), last(1);
    const DeviceBuffer<unsigned> next(std::vector<unsigned>{0});
    for (int i = 0; i < 2; ++i) {  // the ticket is back at 0
      check(launch(ticket, 7, 32, 0, nullptr, blocks.data(), next.data(), last.data()));
      EXPECT_EQ(last.download()[0], 21);
    }
  });
}

// Elements of A (16 x 16) by row + 16 column: lane % 4 * 32 + lane / 4, then value bits 16, 8, 128; of B (8 columns by
// column + 8 row): lane % 4 * 16 + lane / 4, then 8, 64; of C (16 x 8) by row + 16 column: lane % 4 * 32 + lane / 4,
// then 16, 8.
template <class T>
__global__ void multiply_fragments(const float* a, const float* b, float* c) {
  const int lane = static_cast<int>(threadIdx.x);
  uint32_t a_parts[4], b_parts[2];
  for (int part = 0; part < 4; ++part) {
    T pair[2];
    for (int value = 0; value < 2; ++value) {
      const int at = lane % 4 * 32 + lane / 4 + value * 16 + part % 2 * 8 + part / 2 * 128;
      pair[value] = static_cast<T>(a[at % 16 * 16 + at / 16]);
    }
    std::memcpy(&a_parts[part], pair, 4);
  }
  for (int part = 0; part < 2; ++part) {
    T pair[2];
    for (int value = 0; value < 2; ++value) {
      const int at = lane % 4 * 16 + lane / 4 + value * 8 + part * 64;
      pair[value] = static_cast<T>(b[at / 8 * 8 + at % 8]);
    }
    std::memcpy(&b_parts[part], pair, 4);
  }
  float sums[4] = {};
  kernels::mma_m16n8k16(T(), sums, a_parts, b_parts, sums);
  for (int value = 0; value < 4; ++value) {
    const int at = lane % 4 * 32 + lane / 4 + value % 2 * 16 + value / 2 * 8;
    c[at % 16 * 8 + at / 16] = sums[value];
  }
}

std::vector<float> small_integers(size_t count) {
  std::mt19937 random(3);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 17) - 8);
  return values;
}

TEST(Mma, Fragments) {
  const std::vector<float> a = small_integers(256), b = small_integers(128);
  std::vector<float> expected(128);
  for (size_t m = 0; m < 16; ++m) {
    for (size_t n = 0; n < 8; ++n) {
      for (size_t k = 0; k < 16; ++k) expected[m * 8 + n] += a[m * 16 + k] * b[k * 8 + n];
    }
  }
  const DeviceBuffer<float> a_device(a), b_device(b), c(128);
  check(launch(multiply_fragments<__half>, 1, 32, 0, nullptr, a_device.data(), b_device.data(), c.data()));
  EXPECT_EQ(c.download(), expected);
  check(launch(multiply_fragments<__nv_bfloat16>, 1, 32, 0, nullptr, a_device.data(), b_device.data(), c.data()));
  EXPECT_EQ(c.download(), expected);
}

// Row i of matrix m holds 64 m + 8 i ... + 7; rows lie `stride` elements apart.
__global__ void load_matrices_by(int stride, bool transposed, uint32_t* out) {
  BRISK_SHARED(uint16_t, tile, [32 * 64]);
  const int lane = static_cast<int>(threadIdx.x);
  uint16_t* row = tile + lane * stride;
  for (int i = 0; i < 8; ++i) row[i] = static_cast<uint16_t>(lane * 8 + i);
  __syncthreads();
  uint32_t parts[4];
  if (transposed) {
    kernels::ldmatrix_x4_trans(parts, row);
  } else {
    kernels::ldmatrix_x4(parts, row);
  }
  for (int part = 0; part < 4; ++part) out[part * 32 + lane] = parts[part];
}

TEST(Ldmatrix, Fragments) {
  const DeviceBuffer<uint32_t> out(128);
  for (const bool transposed : {false, true}) {
    check(launch(load_matrices_by, 1, 32, 0, nullptr, 8, transposed, out.data()));
    const std::vector<uint32_t> got = out.download();
    for (uint32_t i = 0; i < 128; ++i) {
      const uint32_t first = i / 32 * 64, row = i % 32 / 4, column = i % 4 * 2;
      const uint32_t low = transposed ? first + column * 8 + row : first + row * 8 + column;
      EXPECT_EQ(got[i], low | (low + (transposed ? 8 : 1)) << 16) << i;
    }
  }
}

TEST(Ldmatrix, BankConflictsAreCounted) {
  const DeviceBuffer<uint32_t> out(128);
  auto conflicts = [&](int stride) {
    const int64_t before = stats().ldmatrix_conflicts;
    check(launch(load_matrices_by, 1, 32, 0, nullptr, stride, false, out.data()));
    check(cudaDeviceSynchronize());
    return stats().ldmatrix_conflicts - before;
  };
  EXPECT_EQ(conflicts(8), 0) << "rows one after the other";
  EXPECT_EQ(conflicts(64), 4 * 7) << "rows of 128 bytes: all eight in the same banks";
  EXPECT_EQ(conflicts(32), 4 * 3) << "rows of 64 bytes: four in the same banks";
}

template <int Bytes>
__global__ void copy_partly(const unsigned char* from, unsigned char* to, int valid) {
  BRISK_SHARED(uint4, tile, [32]);
  auto* own = reinterpret_cast<unsigned char*>(&tile[threadIdx.x]);
  kernels::async_copy<Bytes>(own, from + threadIdx.x * Bytes, valid);
  kernels::async_copy_commit();
  kernels::async_copy_wait<0>();
  for (int i = 0; i < Bytes; ++i) to[threadIdx.x * Bytes + i] = own[i];
}

template <int Bytes>
void expect_zero_fill() {
  std::vector<unsigned char> from(32 * Bytes);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i + 1);
  for_each_schedule([&] {
    for (int valid = 0; valid <= Bytes; ++valid) {
      const DeviceBuffer<unsigned char> source(from), to(from.size());
      check(launch(copy_partly<Bytes>, 1, 32, 0, nullptr, source.data(), to.data(), valid));
      const std::vector<unsigned char> got = to.download();
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i], static_cast<int>(i) % Bytes < valid ? from[i] : 0) << valid << " " << i;
      }
    }
  });
}

TEST(AsyncCopy, BytesThatAreNotValidAreZero) {
  expect_zero_fill<4>();
  expect_zero_fill<8>();
  expect_zero_fill<16>();
}

__global__ void pipeline(const float* from, float* to, int tiles) {
  BRISK_SHARED(float, stages, [2][32]);
  auto load = [&](int tile) {
    if (tile < tiles) kernels::async_copy<4>(&stages[tile % 2][threadIdx.x], from + tile * 32 + threadIdx.x);
    kernels::async_copy_commit();
  };
  load(0);
  for (int tile = 0; tile < tiles; ++tile) {
    load(tile + 1);
    kernels::async_copy_wait<1>();
    __syncthreads();
    to[tile * 32 + threadIdx.x] = stages[tile % 2][31 - threadIdx.x];
    __syncthreads();
  }
}

TEST(AsyncCopy, GroupsAreWaitedForInOrder) {
  std::vector<float> from(5 * 32);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
  for_each_schedule([&] {
    const DeviceBuffer<float> source(from), to(from.size());
    check(launch(pipeline, 1, 32, 0, nullptr, source.data(), to.data(), 5));
    const std::vector<float> got = to.download();
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], from[i / 32 * 32 + 31 - i % 32]);
  });
}

}  // namespace
}  // namespace brisk::simt
