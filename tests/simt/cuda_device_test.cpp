// Which devices the CUDA backend finds, and what it says of those that it cannot use.
#include <gtest/gtest.h>

#include "backend/cuda.h"
#include "backend/cuda/runtime/device.h"
#include "backend/cuda/runtime/nvml.h"
#include "brisk/error.h"
#include "simt/emulated_device.h"

namespace brisk::backend::cuda {
namespace {

class CudaDevices : public testing::Test {
 protected:
  CudaDevices() { simt::reset_device(); }
  ~CudaDevices() override { simt::reset_device(); }
  simt::EmulatedDevice& machine = simt::emulated_device();

  /// What is said of the machine's devices, the same by cuda_devices and by cuda_backend.
  static std::string why_not() {
    std::string why;
    EXPECT_TRUE(cuda_devices(why).empty());
    try {
      open_device(0);
      ADD_FAILURE() << "a device was opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::backend);
      EXPECT_EQ(error.field(), "gpu 0");
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what() << " lacks: " << why;
      EXPECT_NE(std::string(error.what()).find("use .device = cpu()"), std::string::npos) << error.what();
    }
    return why;
  }
};

TEST_F(CudaDevices, AreThoseOfTheMachine) {
  machine.count = 3;
  std::string why;
  EXPECT_EQ(cuda_devices(why), (std::vector<Device>{gpu(0), gpu(1), gpu(2)}));
  EXPECT_EQ(why, "");
  EXPECT_EQ(device_profile(gpu(2))->processors, 4);
  EXPECT_EQ(device_profile(gpu(3)), nullptr);
}

TEST_F(CudaDevices, AreCountedFromZero) {
  try {
    open_device(1);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("there is 1 GPU, numbered from 0"), std::string::npos) << error.what();
  }
  EXPECT_THROW(open_device(-1), Error);
}

TEST_F(CudaDevices, NoDriver) {
  machine.driver_version = 0;
  EXPECT_NE(why_not().find("no NVIDIA driver is installed"), std::string::npos) << why_not();
}

TEST_F(CudaDevices, AnOldDriverIsNamedBesideWhatIsNeeded) {
  machine.driver_version = CUDART_VERSION / 1000 * 1000 - 960;
  const int major = CUDART_VERSION / 1000;
  const std::string needed = std::to_string(major) + "." + std::to_string(CUDART_VERSION % 1000 / 10);
  const std::string why = why_not();
  EXPECT_NE(why.find("is too old: it has CUDA " + std::to_string(major - 1) + ".4, this build needs " + needed),
            std::string::npos)
      << why;
  EXPECT_NE(why.find("install driver "), std::string::npos) << why;
}

TEST_F(CudaDevices, NoDevice) {
  machine.count = 0;
  EXPECT_NE(why_not().find("the driver sees no NVIDIA GPU"), std::string::npos) << why_not();
}

TEST_F(CudaDevices, ADriverThatDoesNotStart) {
  simt::fail_call(1, cudaErrorSystemDriverMismatch);
  std::string why;
  EXPECT_TRUE(cuda_devices(why).empty());
  EXPECT_NE(why.find("(CUDA error 803)"), std::string::npos) << why;
}

TEST_F(CudaDevices, VoltaIsTooOld) {
  machine.name = "Tesla V100";
  machine.major = 7;
  machine.minor = 0;
  EXPECT_EQ(why_not(),
            "Tesla V100 has compute capability 7.0; the kernels need 7.5 (Turing) or newer: CUDA 13 no longer compiles "
            "for Volta (V100)");
  machine.minor = 5;
  std::string why;
  EXPECT_EQ(cuda_devices(why).size(), 1u) << why;
}

TEST_F(CudaDevices, AFailureToOpenIsNotKept) {
  machine.count = 1;  // other tests may have opened that one
  EXPECT_THROW(cuda_backend(gpu(1)), Error);
  machine.count = 2;
  const Backend& backend = cuda_backend(gpu(1));
  EXPECT_EQ(&cuda_backend(gpu(1)), &backend);
  EXPECT_FALSE(backend.host_memory());
  EXPECT_EQ(backend.runtime(8)->threads(), 1);
}

TEST_F(CudaDevices, GraphsCanBeTurnedOffAndNothingElseIsUnderstood) {
  ASSERT_EQ(setenv("BRISK_CUDA_GRAPHS", "sometimes", 1), 0);
  EXPECT_THROW(cuda_backend(gpu(0)).runtime(0), Error);
  ASSERT_EQ(unsetenv("BRISK_CUDA_GRAPHS"), 0);
}

TEST(CudaManagement, AMissingLibraryIsNamed) {
  EXPECT_EQ(ask_management("libabsent.so.7").why_not, "libabsent.so.7 not found");
  EXPECT_EQ(ask_management("libz.so.1").why_not, "libz.so.1 has no nvmlInit_v2");
}

}  // namespace
}  // namespace brisk::backend::cuda
