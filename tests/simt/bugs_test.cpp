// Each mistake of a kernel that the emulation is there to find, made once and found: by the emulation itself, by
// AddressSanitizer, by ThreadSanitizer, by results that depend on the schedule, or by NaN where nothing was written.
#include <cmath>

#include "kernels/common/async_copy.h"
#include "kernels/common/mma.h"
#include "simt/device_buffer.h"
#include "simt/emulated_device.h"
#include "simt/sanitizer.h"

#if defined(BRISK_SIMT_TSAN)
extern "C" const char* __tsan_default_options() { return "halt_on_error=1"; }
#endif

namespace brisk::simt {
namespace {

using kernels::async_copy;
using kernels::async_copy_commit;
using kernels::async_copy_wait;
using kernels::launch;

constexpr int kThreads = 64;

// ---- memory ----

__global__ void past_the_end(float* x, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i <= n) x[i] = 1.0f;
}
__global__ void past_static_shared(float* x) {
  BRISK_SHARED(float, tile, [kThreads]);
  tile[threadIdx.x + 1] = 1.0f;
  __syncthreads();
  x[threadIdx.x] = tile[threadIdx.x];
}
__global__ void past_dynamic_shared(float* x) {
  BRISK_DYNAMIC_SHARED(float, tile);
  tile[threadIdx.x + 1] = 1.0f;
  __syncthreads();
  x[threadIdx.x] = tile[threadIdx.x];
}
__global__ void past_an_array(float* x, int last) {
  float values[8];
  for (int i = 0; i <= last; ++i) values[i] = static_cast<float>(i);
  x[threadIdx.x] = values[threadIdx.x % 8];
}
__global__ void misaligned_load(float* x) {
  const float4 value = *reinterpret_cast<float4*>(x + 1 + 4 * threadIdx.x);
  x[threadIdx.x] = value.x;
}
__global__ void scale(float* x, float factor) { x[threadIdx.x] *= factor; }
__global__ void read_unwritten_shared(float* x) {
  BRISK_SHARED(float, tile, [kThreads]);
  if (threadIdx.x < kThreads - 1) tile[threadIdx.x] = 1.0f;
  __syncthreads();
  x[threadIdx.x] = tile[threadIdx.x];
}

// ---- races ----

__global__ void read_before_barrier(float* x) {
  BRISK_SHARED(float, tile, [kThreads]);
  tile[threadIdx.x] = x[threadIdx.x];
  x[threadIdx.x] = tile[kThreads - 1 - threadIdx.x] * 2.0f;
}
__global__ void write_before_all_have_read(float* x) {
  BRISK_SHARED(float, tile, [kThreads]);
  float value = x[threadIdx.x];
  for (int i = 0; i < 3; ++i) {
    tile[threadIdx.x] = value;
    __syncthreads();
    value += tile[(threadIdx.x + 33) % kThreads];
  }
  x[threadIdx.x] = value;
}
__global__ void read_without_warp_barrier(float* x) {
  BRISK_SHARED(float, tile, [kThreads]);
  tile[threadIdx.x] = x[threadIdx.x];
  x[threadIdx.x] = tile[threadIdx.x ^ 1] + 1.0f;
}
__global__ void add_from_all_blocks(float* x) {
  if (threadIdx.x == 0) x[0] += 1.0f;
}
__global__ void copy_without_wait(float* x) {
  BRISK_SHARED(float4, tile, [kThreads]);
  async_copy<16>(&tile[threadIdx.x], x + 4 * threadIdx.x);
  async_copy_commit();
  __syncthreads();
  x[4 * threadIdx.x] = tile[kThreads - 1 - threadIdx.x].x;
}
__global__ void copy_without_barrier(float* x) {
  BRISK_SHARED(float4, tile, [kThreads]);
  async_copy<16>(&tile[threadIdx.x], x + 4 * threadIdx.x);
  async_copy_commit();
  async_copy_wait<0>();
  x[4 * threadIdx.x + 1] = tile[kThreads - 1 - threadIdx.x].x;
}

// ---- divergence ----

__global__ void exit_before_barrier(float* x) {
  if (threadIdx.x >= 48) return;
  x[threadIdx.x] = 1.0f;
  __syncthreads();
}
__global__ void two_barriers(float* x) {
  if (threadIdx.x < 32) {
    x[threadIdx.x] = 1.0f;
    __syncthreads();
  } else {
    __syncthreads();
  }
}
__global__ void loops_of_other_lengths(float* x) {
  for (unsigned i = 0; i <= threadIdx.x / 32; ++i) {
    __syncthreads();
    x[threadIdx.x] = static_cast<float>(i);
  }
}
__global__ void half_a_warp_shuffles(float* x) {
  float value = 1.0f;
  if (threadIdx.x % 2 == 1) value = __shfl_xor_sync(~0u, value, 2);
  x[threadIdx.x] = value;
}
__global__ void half_a_warp_multiplies(float* x) {
  uint32_t a[4] = {}, b[2] = {};
  float c[4] = {};
  if (threadIdx.x < 16) kernels::mma_m16n8k16(__half(), c, a, b, c);
  x[threadIdx.x] = c[0];
}
__global__ void warp_waits_for_block(float* x) {
  if (threadIdx.x < 16) {
    __syncwarp();
  } else {
    __syncthreads();
  }
  x[threadIdx.x] = 0.0f;
}

/// Runs a kernel on 256 floats, 0 to 255; what they are afterwards.
template <class Kernel, class... Arguments>
std::vector<float> run_on_floats(Kernel kernel, int blocks, size_t shared_bytes, Arguments... arguments) {
  std::vector<float> values(256);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const DeviceBuffer<float> x(values);
  check(launch(kernel, blocks, kThreads, shared_bytes, nullptr, x.data(), arguments...));
  return x.download();
}

std::vector<float> use_freed_memory() {
  float* freed;
  {
    const DeviceBuffer<float> x{std::vector<float>(kThreads)};
    freed = x.data();
  }
  check(launch(scale, 1, kThreads, 0, nullptr, freed, 2.0f));
  return {};
}

std::vector<float> read_from_the_host() {
  const DeviceBuffer<float> x{std::vector<float>(kThreads)};
  return {*static_cast<volatile float*>(x.data())};
}

struct Bug {
  const char* name;
  std::vector<float> (*run)();
  const char* report;  ///< part of what is reported, where something reports
};
void PrintTo(const Bug& bug, std::ostream* out) { *out << bug.name; }
std::string name_of(const testing::TestParamInfo<Bug>& bug) { return bug.param.name; }

const Bug kDivergence[] = {
    {"ExitBeforeBarrier", [] { return run_on_floats(exit_before_barrier, 1, 0); }, "divergent __syncthreads"},
    {"TwoBarriers", [] { return run_on_floats(two_barriers, 1, 0); }, "divergent __syncthreads"},
    {"LoopsOfOtherLengths", [] { return run_on_floats(loops_of_other_lengths, 1, 0); }, "divergent __syncthreads"},
    {"HalfAWarpShuffles", [] { return run_on_floats(half_a_warp_shuffles, 1, 0); }, "__shfl_sync"},
    {"HalfAWarpMultiplies", [] { return run_on_floats(half_a_warp_multiplies, 1, 0); }, "mma.m16n8k16"},
    {"WarpWaitsForBlock", [] { return run_on_floats(warp_waits_for_block, 1, 0); }, "deadlock"},
};
const Bug kMemory[] = {
    {"PastTheEnd", [] { return run_on_floats(past_the_end, 5, 0, 256); }, "AddressSanitizer"},
    {"PastStaticShared", [] { return run_on_floats(past_static_shared, 1, 0); }, "AddressSanitizer|runtime error"},
    {"PastDynamicShared", [] { return run_on_floats(past_dynamic_shared, 1, 256); }, "AddressSanitizer"},
    {"PastAnArray", [] { return run_on_floats(past_an_array, 1, 0, 8); }, "AddressSanitizer|runtime error"},
    {"MisalignedLoad", [] { return run_on_floats(misaligned_load, 1, 0); }, "misaligned address|AddressSanitizer"},
    {"FreedMemory", use_freed_memory, "AddressSanitizer"},
    {"HostReadsDeviceMemory", read_from_the_host, "AddressSanitizer"},
    {"CopyWithoutWait", [] { return run_on_floats(copy_without_wait, 1, 0); }, "AddressSanitizer"},
};
const Bug kRaces[] = {
    {"ReadBeforeBarrier", [] { return run_on_floats(read_before_barrier, 1, 0); }, "data race"},
    {"WriteBeforeAllHaveRead", [] { return run_on_floats(write_before_all_have_read, 1, 0); }, "data race"},
    {"ReadWithoutWarpBarrier", [] { return run_on_floats(read_without_warp_barrier, 1, 0); }, "data race"},
    {"CopyWithoutBarrier", [] { return run_on_floats(copy_without_barrier, 1, 0); }, "data race"},
    {"AddFromAllBlocks", [] { return run_on_floats(add_from_all_blocks, 4, 0); }, "data race"},
};

class EmulationReports : public testing::TestWithParam<Bug> {
 protected:
  void SetUp() override { config().abort_on_error = false; }
  void TearDown() override {
    config().abort_on_error = true;
    reset_device();
  }
};

TEST_P(EmulationReports, Divergence) {
  for_each_schedule([] {
    EXPECT_ANY_THROW(GetParam().run());
    EXPECT_NE(std::string(last_error()).find(GetParam().report), std::string::npos) << last_error();
    EXPECT_NE(std::string(last_error()).find("launched at"), std::string::npos) << last_error();
    reset_device();
  });
}
INSTANTIATE_TEST_SUITE_P(Bugs, EmulationReports, testing::ValuesIn(kDivergence), name_of);

TEST(EmulationReports, TheNextLaunchAfterAFailure) {
  config().abort_on_error = false;
  EXPECT_ANY_THROW(run_on_floats(exit_before_barrier, 1, 0));
  EXPECT_ANY_THROW(run_on_floats(scale, 1, 0, 2.0f)) << "the device is lost";
  reset_device();
  config().abort_on_error = true;
  EXPECT_EQ(run_on_floats(scale, 1, 0, 2.0f)[3], 6.0f);
}

TEST(Garbage, UnwrittenMemoryIsNan) {
  EXPECT_TRUE(std::isnan(run_on_floats(read_unwritten_shared, 1, 0)[kThreads - 1]));
  EXPECT_TRUE(std::isnan(DeviceBuffer<float>(1).download()[0]));
}

#if defined(BRISK_SIMT_ASAN)

class AddressSanitizerReports : public testing::TestWithParam<Bug> {};
TEST_P(AddressSanitizerReports, Accesses) { EXPECT_DEATH(GetParam().run(), GetParam().report); }
INSTANTIATE_TEST_SUITE_P(Bugs, AddressSanitizerReports, testing::ValuesIn(kMemory), name_of);

#elif defined(BRISK_SIMT_TSAN)

class ThreadSanitizerReports : public testing::TestWithParam<Bug> {};
TEST_P(ThreadSanitizerReports, Races) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(GetParam().run(), GetParam().report);
}
INSTANTIATE_TEST_SUITE_P(Bugs, ThreadSanitizerReports, testing::ValuesIn(kRaces), name_of);

#else

// Without a sanitizer: a race within a block shows in what comes out.
class ResultsDependOnTheSchedule : public testing::TestWithParam<Bug> {};
TEST_P(ResultsDependOnTheSchedule, Races) {
  const std::vector<float> in_order = GetParam().run();
  int others = 0;
  for_each_schedule([&] { others += GetParam().run() != in_order; }, 8);
  EXPECT_GT(others, 0);
}
INSTANTIATE_TEST_SUITE_P(Bugs, ResultsDependOnTheSchedule, testing::ValuesIn(kRaces, kRaces + 4), name_of);

TEST(Garbage, CopiesNotWaitedForAreNan) {
  for_each_schedule([] { EXPECT_TRUE(std::isnan(run_on_floats(copy_without_wait, 1, 0)[0])); }, 2);
}

#endif

}  // namespace
}  // namespace brisk::simt
