// Plans for CUDA devices, which no machine needs: targets by name, launches, modelled time, what is refused.
#include <gtest/gtest.h>

#include <set>

#include "backend/backend.h"
#include "backend/cuda/cuda_target.h"
#include "backend/cuda/profiles.h"
#include "brisk/brisk.h"
#include "support/error_text.h"
#include "support/networks.h"

namespace brisk {
namespace {

namespace cuda = backend::cuda;

Plan lenet_plan(Precision precision, int64_t batch = 64) {
  Model model(test::lenet, {1, 28, 28});
  const Step step(model, cross_entropy(), sgd({.learning_rate = 0.01, .momentum = 0.9}),
                  {.batch = batch, .device = gpu(0), .precision = precision});
  return step.plan(0, "h200");
}

TEST(CudaPlan, LenetsStepHasFewLaunches) {
  EXPECT_LE(lenet_plan(Precision::fp16).launches(), 40);
  EXPECT_LE(lenet_plan(Precision::bf16).launches(), 40);
  EXPECT_LE(lenet_plan(Precision::f32).launches(), 40);
}

TEST(CudaPlan, ModelledTimeIsOfBytesFlopsAndLaunches) {
  const Plan plan = lenet_plan(Precision::f32);
  const cuda::Profile& h200 = *cuda::find_profile("h200");
  double seconds = 0;
  for (const PlanStep& step : plan.steps()) {
    seconds += step.seconds;
    const double modelled = step.bytes / h200.bytes_per_s + step.flops / h200.flops_per_s_f32 + step.launches * 2e-6;
    EXPECT_NEAR(step.seconds, step.launches > 0 ? modelled : 0, 1e-12) << step.op;
  }
  EXPECT_NEAR(plan.seconds(), seconds, 1e-12);
  EXPECT_GT(lenet_plan(Precision::f32, 1024).seconds(), plan.seconds());
}

TEST(CudaPlan, MatrixUnitsArePartOfTheModel) {
  const Plan plan = lenet_plan(Precision::fp16);
  const cuda::Profile& h200 = *cuda::find_profile("h200");
  int convolutions = 0;
  for (const PlanStep& step : plan.steps()) {
    if (step.op.rfind("conv2d '", 0) != 0) continue;
    ++convolutions;
    EXPECT_NEAR(step.seconds, step.bytes / h200.bytes_per_s + step.flops / h200.flops_per_s + 2e-6, 1e-12);
  }
  EXPECT_EQ(convolutions, 2);
}

TEST(CudaPlan, ActivationsOfImagesLieChannelsLast) {
  const auto target = backend::target_named("h200");
  const graph::ValueType image{DType::f32, 1, {3, 8, 8}}, tokens{DType::f32, 1, {16, 32}};
  EXPECT_EQ(target->layout(image), graph::Layout::channels_last);
  EXPECT_EQ(target->layout(tokens), graph::Layout::plain);
  EXPECT_EQ(target->lanes(), 1);
  EXPECT_TRUE(target->asynchronous());
}

TEST(CudaPlan, TargetsHaveNames) {
  EXPECT_EQ(backend::target_named("h200")->name(), "cuda h200 (sm_90a)");
  EXPECT_EQ(backend::target_named("a100")->name(), "cuda a100 (sm_80)");
  EXPECT_EQ(backend::target_named("t4")->name(), "cuda t4 (sm_75)");
  const std::string refused = test::error_text([] { backend::target_named("v100"); });
  EXPECT_NE(refused.find("target \"v100\""), std::string::npos) << refused;
  EXPECT_NE(refused.find("cpu, h200, h100, a100"), std::string::npos) << refused;
}

TEST(CudaPlan, OldDevicesHaveNoBfloat16) {
  graph::Graph graph;
  const graph::ValueId x = graph.add_value({DType::f32, 1, {8}});
  graph.add_node("relu", {x}, {}, "relu");
  EXPECT_FALSE(backend::target_named("t4")->computes(graph.nodes[0], DType::bf16));
  EXPECT_TRUE(backend::target_named("t4")->computes(graph.nodes[0], DType::f16));
  EXPECT_TRUE(backend::target_named("a100")->computes(graph.nodes[0], DType::bf16));
  EXPECT_EQ(backend::target_named("t4")->matrix_type(), DType::f16);
  EXPECT_EQ(backend::target_named("h100")->matrix_type(), DType::bf16);
}

TEST(CudaPlan, WhatHasNoKernelIsRefusedByName) {
  Model model([](Var x) { return linear(flatten(resize2d(x, {.scale = 2})), 10); }, Shape{3, 4, 4});
  const Step step(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.device = gpu(0)});
  const std::string refused = test::error_text([&] { step.plan(0, "h200"); });
  EXPECT_NE(refused.find("no CUDA kernel computes resize2d yet; use .device = cpu()"), std::string::npos) << refused;
}

TEST(CudaProfiles, ADeviceIsKnownByItsName) {
  const auto name_of = [](const char* device, int capability) {
    return cuda::profile_of(device, capability, 132, int64_t{1} << 36, 1 << 16).name;
  };
  EXPECT_EQ(name_of("NVIDIA H200", 90), "h200");
  EXPECT_EQ(name_of("NVIDIA H100 80GB HBM3", 90), "h100");
  EXPECT_EQ(name_of("NVIDIA A100-SXM4-80GB", 80), "a100");
  EXPECT_EQ(name_of("NVIDIA A10", 86), "a10");
  EXPECT_EQ(name_of("NVIDIA GeForce RTX 4090", 89), "rtx4090");
  EXPECT_EQ(name_of("Tesla T4", 75), "t4");
}

TEST(CudaProfiles, AnUnknownDeviceIsModelledByTheNearestOne) {
  const cuda::Profile half = cuda::profile_of("NVIDIA Something", 90, 66, 1000, 2000),
                      full = *cuda::find_profile("h200");
  EXPECT_EQ(half.name, "nvidiasomething");
  EXPECT_EQ(half.capability, 90);
  EXPECT_EQ(half.processors, 66);
  EXPECT_EQ(half.memory_bytes, 1000);
  EXPECT_EQ(half.shared_bytes, 2000);
  EXPECT_DOUBLE_EQ(half.flops_per_s, full.flops_per_s / 2);
  EXPECT_DOUBLE_EQ(half.bytes_per_s, full.bytes_per_s / 2);
  EXPECT_EQ(cuda::profile_of("NVIDIA Next", 120, 132, 1, 1).flops_per_s, full.flops_per_s);
  EXPECT_EQ(cuda::profile_of("NVIDIA Older", 70, 40, 1, 1).flops_per_s, cuda::find_profile("t4")->flops_per_s);
}

TEST(CudaProfiles, EntriesAreWhole) {
  std::set<std::string> names;
  for (const cuda::Profile& profile : cuda::profiles()) {
    EXPECT_TRUE(names.insert(profile.name).second);
    EXPECT_GT(profile.flops_per_s, profile.flops_per_s_f32) << profile.name;
    EXPECT_GT(profile.bytes_per_s, 1e11) << profile.name;
    EXPECT_GE(profile.capability, 75) << profile.name;
    EXPECT_GE(profile.shared_bytes, 64 << 10) << profile.name;
    EXPECT_GT(profile.memory_bytes, profile.processors);
  }
}

}  // namespace
}  // namespace brisk
