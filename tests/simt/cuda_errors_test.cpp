// What the CUDA backend says and keeps when a call of the runtime API fails, the device is lost, or memory runs out.
#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "brisk/brisk.h"
#include "simt/device_buffer.h"
#include "simt/emulated_device.h"
#include "simt/plan_by_hand.h"

namespace brisk::backend::cuda {
namespace {

/// All that a fixture can do. Two runs are never unreported when it begins, so that it can be done after an error.
void do_everything(Fixture& f) {
  f.run(StepList::micro_batch, 1);
  f.run(kBoth, 2, true);
  f.report(1);
  f.evaluate(3);
  f.report(1);
  f.run(StepList::update, 0);
  f.report();
  f.report();
  f.program->refresh_shadows();
}

bool tidies_up(const std::string& call) {
  const std::set<std::string> names = {"cudaFree", "cudaFreeHost", "cudaGraphDestroy", "cudaGraphExecDestroy"};
  return names.count(call) > 0;
}

TEST(CudaErrors, EachCallMayFailOnceAndNothingIsLost) {
  const simt::Live before = simt::live();
  int64_t calls = 0;
  {
    simt::reset_device();
    Fixture f;
    do_everything(f);
    calls = simt::calls();
  }
  ASSERT_GT(calls, 60);
  for (int64_t n = 1; n <= calls; ++n) {
    simt::reset_device();
    simt::fail_call(n);
    std::optional<Fixture> f;
    std::string said;
    try {
      f.emplace();
      do_everything(*f);
    } catch (const Error& error) {
      said = error.what();
      EXPECT_EQ(error.code(), ErrorCode::backend);
    }
    SCOPED_TRACE(std::to_string(n) + ": " + simt::failed_call() + ": " + said);
    // What only tidies up may fail in silence.
    if (said.empty())
      EXPECT_TRUE(tidies_up(simt::failed_call()));
    else
      EXPECT_NE(said.find("gpu 0"), std::string::npos);
    if (f) {
      Report report;
      while (f->runtime.report(0, report)) {
      }
      const float start = f->parameter();
      f->run(StepList::micro_batch, 1);
      f->run(kBoth, 2, true);
      f->report();
      EXPECT_EQ(f->report().stats[0], 15);
      EXPECT_EQ(f->parameter(), start - 7.5f);
      EXPECT_EQ(f->evaluate(4), std::vector<float>(kEvaluated, 4));
      f->report();
    }
    f.reset();
    EXPECT_EQ(simt::live(), before);
  }
  simt::reset_device();
}

TEST(CudaErrors, ALostDeviceIsSaidAndLetsGo) {
  const simt::Live before = simt::live();
  for (const int64_t n : {1, 5, 9, 12}) {
    simt::reset_device();
    {
      Fixture f;
      f.run(kBoth, 1);
      simt::fail_call(n, cudaErrorIllegalAddress, true);
      std::string said;
      try {
        for (int run = 0; run < 3; ++run) {
          f.report();
          f.run(kBoth, 1);
        }
      } catch (const Error& error) {
        said = error.what();
      }
      EXPECT_NE(said.find("is lost for this process: start the program again"), std::string::npos) << said;
      EXPECT_THROW(f.run(kBoth, 1), Error);
    }
    EXPECT_EQ(simt::live(), before);
    simt::reset_device();
    Fixture f;
    f.run(kBoth, 2);
    f.report();
    EXPECT_EQ(f.parameter(), -5);
  }
}

TEST(CudaErrors, OutOfMemoryInAnyAllocationSaysSoAndTheDeviceGoesOn) {
  const simt::Live before = simt::live();
  for (int64_t n = 1; n < 60; ++n) {
    simt::reset_device();
    simt::fail_call(n, cudaErrorMemoryAllocation);
    try {
      Fixture f;
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::memory || simt::failed_call() == "cudaGetDeviceCount") << error.what();
    }
    EXPECT_EQ(simt::live(), before);
  }
  simt::reset_device();
}

TEST(CudaMemory, IsZeroAndExactAndSaysWhatItLacks) {
  const OpenDevice device = open_device(0);
  DeviceMemory memory(device);
  const int64_t before = memory.available_bytes();
  void* const block = memory.allocate(1000, "gradients");
  EXPECT_EQ(before - memory.available_bytes(), 1000);
  std::vector<char> bytes(1000, 1);
  memory.read(bytes.data(), block, 1000);
  EXPECT_EQ(bytes, std::vector<char>(1000, 0));
  memory.release(block);
  EXPECT_EQ(memory.available_bytes(), before);
  EXPECT_EQ(memory.allocate(0, "nothing"), nullptr);
}

TEST(CudaMemory, WhatDoesNotFitIsRefusedWithTheNumbers) {
  simt::reset_device();
  simt::emulated_device().memory_bytes = 5000000;
  const OpenDevice device = open_device(0);
  DeviceMemory memory(device);
  const DeviceBlock half(memory.allocate(2500000, "parameters"));
  try {
    memory.allocate(3000000, "activations");
    ADD_FAILURE() << "more than the device has was given";
  } catch (const Error& error) {
    const std::string said = error.what();
    EXPECT_EQ(error.code(), ErrorCode::memory);
    EXPECT_EQ(error.field(), "activations");
    EXPECT_NE(said.find("needs 3,000,000 bytes on gpu 0 (Emulated GPU), 2,500,000 of 5,000,000 are free"),
              std::string::npos)
        << said;
  }
  EXPECT_TRUE(DeviceBlock(memory.allocate(2500000, "activations")));
  simt::reset_device();
}

}  // namespace
}  // namespace brisk::backend::cuda
