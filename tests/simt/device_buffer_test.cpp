// A kernel on the emulated device, from upload to download.
#include "simt/device_buffer.h"

#include "kernels/common/cuda.h"

namespace brisk::simt {
namespace {

__global__ void reverse(const float* from, float* to, int count) {
  BRISK_SHARED(float, tile, [64]);
  tile[threadIdx.x] = from[threadIdx.x];
  __syncthreads();
  to[threadIdx.x] = tile[count - 1 - static_cast<int>(threadIdx.x)];
}

TEST(DeviceBuffer, KernelsSeeWhatIsUploaded) {
  std::vector<float> values(64);
  for (int i = 0; i < 64; ++i) values[i] = static_cast<float>(i);
  for_each_schedule([&] {
    DeviceBuffer<float> from(values), to(64);
    check(kernels::launch(reverse, 1, 64, 0, nullptr, from.data(), to.data(), 64));
    std::vector<float> got = to.download();
    for (int i = 0; i < 64; ++i) EXPECT_EQ(got[i], 63.0f - static_cast<float>(i));
  });
}

}  // namespace
}  // namespace brisk::simt
