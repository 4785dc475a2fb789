// The emulated runtime API: streams, events, graphs, what is refused, calls that are made to fail.
#include <functional>

#include "kernels/common/cuda.h"
#include "simt/device_buffer.h"
#include "simt/emulated_device.h"

namespace brisk::simt {
namespace {

using kernels::launch;

constexpr int kCount = 96;
constexpr size_t kBytes = kCount * sizeof(float);

__global__ void scale(float* x, float factor) { x[threadIdx.x] *= factor; }
__global__ void add(const float* x, const float* y, float* sum) { sum[threadIdx.x] = x[threadIdx.x] + y[threadIdx.x]; }

class Runtime : public testing::Test {
 protected:
  void SetUp() override {
    check(cudaStreamCreateWithFlags(&first_, cudaStreamNonBlocking));
    check(cudaStreamCreateWithFlags(&second_, cudaStreamNonBlocking));
    check(cudaEventCreateWithFlags(&forked_, cudaEventDisableTiming));
    check(cudaEventCreateWithFlags(&joined_, cudaEventDisableTiming));
    void* memory = nullptr;
    check(cudaMallocHost(&memory, kBytes));
    pinned_ = static_cast<float*>(memory);
    fill(1);
  }
  void TearDown() override {
    config().seed = 0;
    reset_device();
    for (cudaStream_t stream : {first_, second_}) cudaStreamDestroy(stream);
    for (cudaEvent_t event : {forked_, joined_}) cudaEventDestroy(event);
    cudaFreeHost(pinned_);
  }

  void fill(float value) {
    for (int i = 0; i < kCount; ++i) pinned_[i] = value;
  }
  /// Uploads to x on the first stream and, beside it, sets y on the second: x = 2 pinned + 0, downloaded to pinned.
  void step() {
    check(cudaMemcpyAsync(x_.data(), pinned_, kBytes, cudaMemcpyHostToDevice, first_));
    check(cudaEventRecord(forked_, first_));
    check(cudaStreamWaitEvent(second_, forked_, 0));
    check(cudaMemsetAsync(y_.data(), 0, kBytes, second_));
    check(cudaEventRecord(joined_, second_));
    check(launch(scale, 1, kCount, 0, first_, x_.data(), 2.0f));
    check(cudaStreamWaitEvent(first_, joined_, 0));
    check(launch(add, 1, kCount, 0, first_, x_.data(), y_.data(), y_.data()));
    check(cudaMemcpyAsync(pinned_, y_.data(), kBytes, cudaMemcpyDeviceToHost, first_));
  }

  cudaStream_t first_ = nullptr, second_ = nullptr;
  cudaEvent_t forked_ = nullptr, joined_ = nullptr;
  float* pinned_ = nullptr;
  DeviceBuffer<float> x_{kCount}, y_{kCount};
};

TEST_F(Runtime, StreamsAndEvents) {
  for_each_schedule(
      [&] {
        fill(3);
        step();
        check(cudaStreamSynchronize(first_));
        EXPECT_EQ(pinned_[kCount - 1], 6.0f);
      },
      8);
}

TEST_F(Runtime, AMissingSynchronisationShowsStaleData) {
  config().seed = 1;
  step();
  EXPECT_EQ(pinned_[0], 1.0f);
  check(cudaStreamSynchronize(first_));
  EXPECT_EQ(pinned_[0], 2.0f);
}

TEST_F(Runtime, AMissingWaitIsFoundBySomeSchedule) {
  int stale = 0;
  for_each_schedule(
      [&] {
        fill(3);
        check(cudaMemcpyAsync(x_.data(), pinned_, kBytes, cudaMemcpyHostToDevice, second_));
        check(cudaMemsetAsync(y_.data(), 0, kBytes, first_));
        check(launch(add, 1, kCount, 0, first_, x_.data(), y_.data(), y_.data()));
        std::vector<float> got(kCount);
        check(cudaMemcpyAsync(got.data(), y_.data(), kBytes, cudaMemcpyDeviceToHost, first_));
        check(cudaStreamSynchronize(first_));
        stale += got[0] != 3.0f;
        check(cudaDeviceSynchronize());
        check(cudaMemset(x_.data(), 0, kBytes));
      },
      8);
  EXPECT_GT(stale, 0);
}

TEST_F(Runtime, GraphsAreCapturedAndReplayed) {
  for_each_schedule([&] {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    check(cudaStreamBeginCapture(first_, cudaStreamCaptureModeThreadLocal));
    step();
    check(cudaStreamEndCapture(first_, &graph));
    size_t count = 0;
    check(cudaGraphGetNodes(graph, nullptr, &count));
    ASSERT_EQ(count, 5u);
    std::vector<cudaGraphNode_t> nodes(count);
    check(cudaGraphGetNodes(graph, nodes.data(), &count));
    int launches = 0;
    for (cudaGraphNode_t node : nodes) {
      cudaGraphNodeType type;
      check(cudaGraphNodeGetType(node, &type));
      launches += type == cudaGraphNodeTypeKernel;
    }
    EXPECT_EQ(launches, 2);
    check(cudaGraphInstantiate(&executable, graph, 0));
    check(cudaGraphDestroy(graph));
    for (int i = 1; i <= 3; ++i) {
      fill(static_cast<float>(i));
      check(cudaGraphLaunch(executable, first_));
      check(cudaStreamSynchronize(first_));
      EXPECT_EQ(pinned_[7], 2.0f * static_cast<float>(i));
    }
    check(cudaGraphExecDestroy(executable));
  });
}

TEST_F(Runtime, CapturesThatADeviceRefuses) {
  cudaGraph_t graph;
  check(cudaStreamBeginCapture(first_, cudaStreamCaptureModeThreadLocal));
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 16), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamSynchronize(first_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaMemset(x_.data(), 0, kBytes), cudaErrorStreamCaptureImplicit);
  check(cudaEventRecord(forked_, first_));
  check(cudaStreamWaitEvent(second_, forked_, 0));
  check(cudaMemsetAsync(x_.data(), 0, kBytes, second_));
  EXPECT_EQ(cudaStreamEndCapture(first_, &graph), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(graph, nullptr);
  check(cudaMemsetAsync(x_.data(), 0, kBytes, second_));
}

TEST_F(Runtime, WrongUseIsAnError) {
  EXPECT_EQ(launch(scale, 1, 2048, 0, first_, x_.data(), 1.0f), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(scale, 0, 32, 0, first_, x_.data(), 1.0f), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(scale, 1, 32, 300 * 1024, first_, x_.data(), 1.0f), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(x_.data(), pinned_, kBytes + 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(x_.data(), pinned_, kBytes, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(pinned_, 0, kBytes), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(pinned_), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(Runtime, MemoryEnds) {
  emulated_device().memory_bytes = 1 << 20;
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total));
  EXPECT_EQ(total, size_t{1} << 20);
  EXPECT_EQ(free, total - 2 * kBytes);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, free + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(memory, nullptr);
}

TEST_F(Runtime, TheDeviceMayBeMissing) {
  int count = 17;
  emulated_device().count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  emulated_device().driver_version = 11000;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
  EXPECT_EQ(count, 17) << "left as it was";
  reset_device();
  check(cudaGetDeviceCount(&count));
  EXPECT_EQ(count, 1);
}

/// All that a small program makes is given back whichever call fails, and the call that did is named.
TEST_F(Runtime, EachCallFailsOnce) {
  auto program = [&] {
    const DeviceBuffer<float> buffer(kCount);
    check(cudaMemcpyAsync(buffer.data(), pinned_, kBytes, cudaMemcpyHostToDevice, first_));
    check(launch(scale, 1, kCount, 0, first_, buffer.data(), 2.0f));
    check(cudaStreamSynchronize(first_));
  };
  const Live before = live();
  const int64_t first = calls();
  program();
  const int64_t made = calls() - first;
  EXPECT_EQ(made, 5);
  std::vector<std::string> failed;
  for (int64_t n = 1; n <= made; ++n) {
    fail_call(n, cudaErrorMemoryAllocation);
    try {
      program();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "CUDA: out of memory");
    }
    failed.push_back(failed_call());
    EXPECT_EQ(live(), before);
  }
  EXPECT_EQ(failed,
            (std::vector<std::string>{"cudaMalloc", "cudaMemcpyAsync", "launch", "cudaStreamSynchronize", "cudaFree"}));
}

TEST_F(Runtime, ALostDeviceStaysLost) {
  fail_call(1, cudaErrorLaunchFailure, true);
  EXPECT_NE(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_NE(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_NE(launch(scale, 1, kCount, 0, first_, x_.data(), 2.0f), cudaSuccess);
  EXPECT_NE(cudaGetLastError(), cudaSuccess);
  EXPECT_NE(cudaGetLastError(), cudaSuccess);
}

TEST_F(Runtime, WhatIsAliveIsCounted) {
  const Live before = live();
  cudaStream_t stream;
  check(cudaStreamCreate(&stream));
  {
    const DeviceBuffer<float> buffer(10);
    EXPECT_EQ(live().allocations, before.allocations + 1);
    EXPECT_EQ(live().bytes, before.bytes + 40);
    EXPECT_EQ(live().streams, before.streams + 1);
  }
  check(cudaStreamDestroy(stream));
  EXPECT_EQ(live(), before);
}

}  // namespace
}  // namespace brisk::simt
