// The distinct bytes that a launch reads and writes.
#include "simt/touched_bytes.h"

#include "simt/device_buffer.h"
#include "simt/touched_probe.h"

namespace brisk::simt {
namespace {

TEST(TouchedBytes, DistinctBytesOfEachLaunch) {
  struct Expected {
    Probe probe;
    int64_t read, written;
  };
  const DeviceBuffer<unsigned char> from{std::vector<unsigned char>(512)}, to{std::vector<unsigned char>(512)};
  for_each_schedule([&] {
    for (const Expected& expected :
         {Expected{Probe::wide, 512, 512}, Expected{Probe::masked, 80, 80}, Expected{Probe::narrow, 64, 64},
          Expected{Probe::staged, 80, 128}, Expected{Probe::atomic, 4, 4}}) {
      SCOPED_TRACE(static_cast<int>(expected.probe));
      touched_bytes();
      for (int i = 0; i < 2; ++i) check(launch_probe(expected.probe, from.data(), to.data()));
      check(cudaDeviceSynchronize());
      const std::vector<TouchedBytes> launches = touched_bytes();
      ASSERT_EQ(launches.size(), 2u);
      for (const TouchedBytes& launch : launches) {
        EXPECT_EQ(launch.read, expected.read);
        EXPECT_EQ(launch.written, expected.written);
        EXPECT_NE(std::string(launch.launch.file).find("touched_probe.cu"), std::string::npos);
      }
    }
  });
}

}  // namespace
}  // namespace brisk::simt
