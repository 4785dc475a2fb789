// Linear layers on cuBLASLt, whose place a library of the tests takes: results, reasons for declining, errors.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "backend/cuda/cublaslt.h"
#include "backend/cuda/runtime/cublaslt.h"
#include "brisk/brisk.h"
#include "cases/compare.h"
#include "cases/op_cases.h"
#include "simt/core.h"
#include "simt/device_node.h"
#include "simt/emulated_device.h"
#include "simt/fake_cublaslt.h"
#include "support/error_text.h"
#include "support/networks.h"
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#endif

namespace brisk::test {
namespace {

using backend::cuda::CublasLt;

#if __has_include(<cublasLt.h>)
namespace lt = backend::cuda::cublaslt;
static_assert(sizeof(lt::Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(lt::Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(lt::Heuristic, status) == offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(lt::kSuccess == CUBLAS_STATUS_SUCCESS && lt::kNotSupported == CUBLAS_STATUS_NOT_SUPPORTED);
static_assert(lt::kComputeF32 == CUBLAS_COMPUTE_32F && CUBLAS_OP_N == 0 && CUBLAS_OP_T == 1);
static_assert(lt::kTransposeA == CUBLASLT_MATMUL_DESC_TRANSA && lt::kTransposeB == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(lt::kEpilogue == CUBLASLT_MATMUL_DESC_EPILOGUE && lt::kBiasPointer == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(lt::kEpilogueNone == CUBLASLT_EPILOGUE_DEFAULT && lt::kEpilogueBias == CUBLASLT_EPILOGUE_BIAS);
static_assert(lt::kMaxWorkspaceBytes == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(lt::kReductionSchemes == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
static_assert(lt::kReductionInComputeType == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
static_assert(lt::kMinAlignmentA == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(lt::kMinAlignmentD == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
#endif

class CublasLtProducts : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(setenv("BRISK_CUBLASLT_LIBRARY", BRISK_FAKE_CUBLASLT, 1), 0);
    ASSERT_EQ(setenv("BRISK_CUDA_ENGINE", "cublaslt", 1), 0);
    void* const library = dlopen(BRISK_FAKE_CUBLASLT, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    const auto found = reinterpret_cast<decltype(&fake_cublaslt)>(dlsym(library, "fake_cublaslt"));
    ASSERT_NE(found, nullptr);
    fake_ = found();
    *fake_ = FakeCublasLt();
    fake_->enqueue = cudaLaunchHostFunc;
  }
  void TearDown() override {
    EXPECT_EQ(fake_->complaint, "");
    EXPECT_EQ(fake_->live, 0);
    fake_->fails.clear();
    unsetenv("BRISK_CUDA_ENGINE");
    simt::config().seed = seed_;
  }

  FakeCublasLt* fake_ = nullptr;
  const uint64_t seed_ = simt::config().seed;
};

NodeCase small_case(const std::string& op) {
  for (const OpCase& row : op_cases())
    if (row.op == op && row.name == op + "_7_to_13") return make_case(row, 5);
  throw Error(ErrorCode::state, op, "no such row");
}

TEST_F(CublasLtProducts, AgreeWithTheReference) {
  int64_t ran = 0;
  for (const OpCase& row : op_cases()) {
    if (row.op.rfind("linear", 0) != 0) continue;
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      const DeviceCase made = device_case(make_case(row, row.batches.front()), dtype);
      if (chosen(made) != "cublaslt") continue;
      SCOPED_TRACE(row.name + ' ' + name(dtype));
      for (const uint64_t seed : {0, 1}) {
        simt::config().seed = seed;
        const Outcome got = run_on_device(made, -1, "cublaslt");
        EXPECT_EQ(got.problems, std::vector<std::string>());
        ASSERT_EQ(difference(made.node_case, got, row.tolerance, stored_types(made)), "");
        ++ran;
      }
    }
  }
  EXPECT_EQ(fake_->products, ran);
  EXPECT_GE(ran, 2 * 3 * 36);  // three operations of twelve sizes
}

TEST_F(CublasLtProducts, WhatItDoesNotTakeGoesToTheNextCandidate) {
  const OpCase* with_relu = nullptr;
  const OpCase* with_bias = nullptr;
  for (const OpCase& row : op_cases()) {
    if (row.name == "linear_relu") with_relu = &row;
    if (row.name == "linear_bias_none") with_bias = &row;
  }
  ASSERT_TRUE(with_relu && with_bias);
  EXPECT_EQ(chosen(device_case(make_case(*with_relu, 3), DType::f32)), "native");
  EXPECT_EQ(chosen(device_case(make_case(*with_bias, 3), DType::f16)), "native");
  EXPECT_EQ(chosen(device_case(make_case(*with_bias, 3), DType::f32)), "cublaslt");
}

TEST_F(CublasLtProducts, AFailingCallIsNamed) {
  const DeviceCase made = device_case(small_case("linear"), DType::f32);
  const auto text = [&] { return error_text([&] { run_on_device(made, -1, "cublaslt"); }); };
  for (const char* function : {"cublasLtMatmulDescCreate", "cublasLtMatrixLayoutCreate",
                               "cublasLtMatmulPreferenceCreate", "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul"}) {
    fake_->fails = function;
    EXPECT_NE(text().find("failed: made to fail (status 13); set BRISK_CUDA_ENGINE=native"), std::string::npos)
        << function << ": " << text();
  }
  fake_->fails = "nothing";
  EXPECT_NE(text().find("Error [backend] gpu 0: cuBLASLt's product for linear"), std::string::npos) << text();
  EXPECT_NE(text().find("(5 x 7 times 7 x 13): choosing an algorithm failed: refused (status 15)"), std::string::npos)
      << text();
}

std::vector<double> losses_of_training() {
  Model model([](Var x) { return linear(tanh(linear(flatten(x), 12)), 10); }, {1, 4, 4}, {.seed = 3});
  Step step(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.accumulate = 2, .batch = 4, .device = gpu(0)});
  const Rows rows = make_rows(16, {1, 4, 4}, 10, 5);
  std::vector<double> losses;
  for (int64_t i = 0; i < 8; ++i) {
    step.run(rows.inputs(i % 4 * 4, 4), rows.labels(i % 4 * 4, 4));
    losses.push_back(step.read().loss);
  }
  return losses;
}

/// Gradients of the second micro-batch of a window are added to those of the first.
TEST_F(CublasLtProducts, TrainInACapturedStep) {
  const std::vector<double> losses = losses_of_training();
  EXPECT_GT(fake_->products, 0);
  EXPECT_LT(fake_->products, 8 * 5);  // captured once a kind of run, replayed afterwards
  setenv("BRISK_CUDA_ENGINE", "native", 1);
  const std::vector<double> native = losses_of_training();
  for (size_t i = 0; i < native.size(); ++i) EXPECT_NEAR(losses[i], native[i], 1e-5);
}

TEST_F(CublasLtProducts, OtherEnginesAreRefused) {
  setenv("BRISK_CUDA_ENGINE", "fast", 1);
  EXPECT_EQ(error_text([] { backend::cuda::cublaslt_comes_first(); }),
            "Error [backend] BRISK_CUDA_ENGINE: \"fast\"; allowed are native and cublaslt");
}

TEST_F(CublasLtProducts, ALibraryThatCannotBeUsedIsNamed) {
  EXPECT_EQ(CublasLt("libabsent.so.13").missing, "libabsent.so.13 not found");
  EXPECT_EQ(CublasLt("libz.so.1").missing, "libz.so.1 has no cublasLtGetVersion");
  fake_->version = 110805;
  EXPECT_EQ(CublasLt(BRISK_FAKE_CUBLASLT).missing,
            std::string(BRISK_FAKE_CUBLASLT) + " is version 11.8.5; 12 or newer is needed");
}

}  // namespace
}  // namespace brisk::test
