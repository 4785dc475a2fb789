// The node runner must notice each way in which a kernel can be wrong that comparing values does not show.
#include "support/run_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/guarded.h"

namespace brisk::test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kSamples = 11, kElements = 5;
constexpr int64_t kLanes = 8, kBlocks = 2;

/// relu over [11, 5] for AVX2: a unit is a block of eight samples.
NodeCase relu_case() {
  NodeCase made{"relu", {}, {{{DType::f32, 1, {kElements}}, {}}}, kSamples};
  for (int64_t i = 0; i < kSamples * kElements; ++i) {
    made.inputs[0].data.push_back(static_cast<double>(i % 7) - 3);
  }
  return made;
}

float relu(float x) { return x > 0 ? x : 0; }

/// The right kernel, and what a wrong one does besides.
template <class Wrong>
void kernel(const void*, const cpu::Operands& operands, int64_t first, int64_t last) {
  const auto* x = operands.input<float>(0);
  auto* y = operands.output<float>(0);
  for (int64_t unit = first; unit < last; ++unit) {
    for (int64_t i = unit * kElements * kLanes; i < (unit + 1) * kElements * kLanes; ++i) y[i] = relu(x[i]);
    Wrong::also(operands, unit);
  }
}

template <class Wrong>
std::vector<std::string> problems_of() {
  const cpu::Implementation implementation{"relu", "native", nullptr,
                                           [](const cpu::Call& call, cpu::Lowering& lowering) {
                                             lowering.workspace(64);
                                             lowering.scratch(64);
                                             lowering.phase(kernel<Wrong>, call.blocks(), 0);
                                           }};
  return run_node(relu_case(), implementation, cpu::Isa::avx2).problems;
}

struct Nothing {
  static void also(const cpu::Operands&, int64_t) {}
};
TEST(RunNode, ARightKernelHasNoProblems) { EXPECT_THAT(problems_of<Nothing>(), IsEmpty()); }

TEST(RunNode, UnpacksWhatWasPacked) {
  const cpu::Implementation implementation{
      "relu", "native", nullptr,
      [](const cpu::Call& call, cpu::Lowering& lowering) { lowering.phase(kernel<Nothing>, call.blocks(), 0); }};
  const Outcome outcome = run_node(relu_case(), implementation, cpu::Isa::avx2);
  ASSERT_EQ(outcome.outputs.size(), 1u);
  EXPECT_EQ(outcome.outputs[0].shape, (Shape{kSamples, kElements}));
  EXPECT_EQ(outcome.outputs[0].data, expected(relu_case())[0].data);
}

struct PastOutput {
  static void also(const cpu::Operands& operands, int64_t unit) {
    if (unit == 0) operands.output<float>(0)[kBlocks * kElements * kLanes] = 1;
  }
};
struct PastWorkspace {
  static void also(const cpu::Operands& operands, int64_t unit) {
    if (unit == 0) operands.workspace[64] = 1;
  }
};
struct PastScratch {
  static void also(const cpu::Operands& operands, int64_t) { operands.scratch[64] = 1; }
};
#if !defined(BRISK_TEST_ADDRESS_SANITIZER)
// Where AddressSanitizer watches, it ends the program.
TEST(RunNode, FindsWritesOutside) {
  EXPECT_THAT(problems_of<PastOutput>(), Contains("wrote outside output 0"));
  EXPECT_THAT(problems_of<PastWorkspace>(), Contains("wrote outside its workspace"));
  EXPECT_THAT(problems_of<PastScratch>(), Contains("wrote outside its scratch"));
}
#endif

struct ChangesInput {
  static void also(const cpu::Operands& operands, int64_t unit) {
    if (unit == 0) const_cast<float*>(operands.input<float>(0))[0] = 9;
  }
};
TEST(RunNode, FindsAChangedInput) { EXPECT_THAT(problems_of<ChangesInput>(), Contains(HasSubstr("changed input 0"))); }

/// Adds up all lanes of the block, also those without a sample.
struct ReadsUnusedLanes {
  static void also(const cpu::Operands& operands, int64_t unit) {
    float sum = 0;
    for (int64_t i = 0; i < kLanes; ++i) sum += operands.input<float>(0)[unit * kElements * kLanes + i];
    operands.output<float>(0)[unit * kElements * kLanes] = sum;
  }
};
TEST(RunNode, FindsUnusedLanes) {
  EXPECT_THAT(problems_of<ReadsUnusedLanes>(), Contains(HasSubstr("depends on unused lanes")));
}

struct ReadsScratch {
  static void also(const cpu::Operands& operands, int64_t unit) {
    operands.output<float>(0)[unit * kElements * kLanes] += reinterpret_cast<const float*>(operands.scratch)[0];
  }
};
TEST(RunNode, FindsMemoryThatNobodyWrote) {
  EXPECT_THAT(problems_of<ReadsScratch>(), Contains(HasSubstr("is not written")));
}

struct LeavesOne {
  static void also(const cpu::Operands& operands, int64_t unit) {
    auto* bits = operands.output<uint32_t>(0);
    if (unit == 1) bits[kElements * kLanes] = 0xFFFFFFFF;  // as it was before the run
  }
};
TEST(RunNode, FindsAnUnwrittenElement) { EXPECT_THAT(problems_of<LeavesOne>(), Contains(HasSubstr("is not written"))); }

/// A unit's result depends on how many ran before it.
struct DependsOnOrder {
  static void also(const cpu::Operands& operands, int64_t unit) {
    auto* ran = reinterpret_cast<std::atomic<int32_t>*>(operands.workspace);
    const int32_t before = ran->fetch_add(1);  // begins at -1: poison
    operands.output<float>(0)[unit * kElements * kLanes] += static_cast<float>(before);
  }
};
TEST(RunNode, FindsDependenceOnOrder) {
  EXPECT_THAT(problems_of<DependsOnOrder>(), Contains(HasSubstr("other bits in output 0 in reverse")));
}

/// Right only while input and output are two.
void reads_backwards(const void*, const cpu::Operands& operands, int64_t first, int64_t last) {
  constexpr int64_t kCount = kElements * kLanes;
  for (int64_t unit = first; unit < last; ++unit) {
    const float* x = operands.input<float>(0) + unit * kCount;
    float* y = operands.output<float>(0) + unit * kCount;
    for (int64_t i = 0; i < kCount; ++i) y[i] = x[i / kLanes / kElements * kCount + i % kCount] + x[i % kLanes];
  }
}
TEST(RunNode, FindsWhatFailsInPlace) {
  const cpu::Implementation implementation{
      "relu", "native", nullptr,
      [](const cpu::Call& call, cpu::Lowering& lowering) { lowering.phase(reads_backwards, call.blocks(), 0); }};
  EXPECT_THAT(run_node(relu_case(), implementation, cpu::Isa::avx2).problems, Contains(HasSubstr("in place")));
}

TEST(RunNode, ReportsWhyACallIsDeclined) {
  const cpu::Implementation implementation{"relu", "library", [](const cpu::Call&) { return std::string("too small"); },
                                           nullptr};
  EXPECT_EQ(run_node(relu_case(), implementation, cpu::Isa::avx2).declined, "too small");
}

}  // namespace
}  // namespace brisk::test
