// What a build without a CUDA toolkit says of devices, and what it can do all the same.
#include <gtest/gtest.h>

#include <cstdlib>

#include "backend/backend.h"
#include "brisk/brisk.h"

namespace brisk {
namespace {

TEST(NoCuda, ADeviceIsRefusedInASentence) {
  try {
    backend::backend_for(gpu(0));
    ADD_FAILURE() << "this build has no backend for it";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "Error [backend] gpu 0: this build has no CUDA backend; use .device = cpu(), or configure with "
                 "-DBRISK_CUDA=ON (toolkit >= 12)");
  }
}

TEST(NoCuda, TheBestDeviceIsTheCpu) {
  std::string why_not;
  EXPECT_EQ(backend::devices(why_not), std::vector<Device>{cpu()});
  EXPECT_EQ(why_not, "this build has no CUDA backend");
  EXPECT_EQ(best_device(), cpu());
}

TEST(NoCuda, PlansForDevicesAreMadeAllTheSame) {
  EXPECT_EQ(backend::target_named("h200")->name(), "cuda h200 (sm_90a)");
  Model model([](Var x) { return linear(flatten(relu(batch_norm(conv2d(x, {.channels = 5, .kernel = 3})))), 2); },
              {3, 8, 8});
  Step step(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 4, .device = gpu(0)});
  EXPECT_GT(step.plan().bytes().total, 0);
  EXPECT_EQ(step.plan().target(), "cuda h200 (sm_90a)");
  EXPECT_NE(step.plan().explain().find("declined: cudnn: not used in this release"), std::string::npos);
  ASSERT_EQ(setenv("BRISK_CUDA_ENGINE", "cublaslt", 1), 0);
  const std::string asked = step.plan(8).explain();
  ASSERT_EQ(unsetenv("BRISK_CUDA_ENGINE"), 0);
  EXPECT_NE(asked.find("declined: cublaslt: this build has no CUDA runtime"), std::string::npos) << asked;
  const std::vector<float> x(4 * 3 * 8 * 8);
  const std::vector<int64_t> labels(4);
  EXPECT_THROW(step.run(view(x, {4, 3, 8, 8}), view(labels, {4})), Error);
}

}  // namespace
}  // namespace brisk
