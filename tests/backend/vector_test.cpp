// Runs the checks of the vector type on the instruction sets that this machine has; the choice of one.
#include <gtest/gtest.h>

#include <cstdlib>

#include "backend/cpu/isa.h"
#include "backend/vector_checks.h"
#include "brisk/error.h"
#include "support/run_node.h"

namespace brisk::test {
namespace {

TEST(Vector, EveryOperationDoesWhatItsLanesWouldDo) {
  for (const backend::cpu::Isa isa : instruction_sets()) {
    const auto check = isa == backend::cpu::Isa::avx512 ? &avx512::vector_check : &avx2::vector_check;
    int checks = 0;
    for (; check(checks); ++checks) EXPECT_STREQ(check(checks)(), "") << backend::cpu::name(isa);
    EXPECT_EQ(checks, 5);
  }
}

/// Sets an environment variable for a scope.
class Environment {
 public:
  explicit Environment(const char* value) : before_(std::getenv(kName) ? std::getenv(kName) : "") {
    setenv(kName, value, 1);
  }
  ~Environment() { setenv(kName, before_.c_str(), 1); }

 private:
  static constexpr const char* kName = "BRISK_CPU_ISA";
  std::string before_;
};

TEST(Isa, TheEnvironmentCapsIt) {
  const Environment cap("avx2");
  EXPECT_EQ(backend::cpu::widest_isa(), backend::cpu::Isa::avx2);
}

TEST(Isa, WithoutACapItIsTheWidestOfTheMachine) {
  const Environment none("");
  EXPECT_EQ(backend::cpu::widest_isa(), instruction_sets().back());
}

TEST(Isa, AnUnknownCapIsRefusedWithWhatIsAllowed) {
  const Environment cap("sse");
  try {
    backend::cpu::widest_isa();
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::backend);
    EXPECT_STREQ(error.what(), "Error [backend] BRISK_CPU_ISA: is 'sse': allowed are avx2, avx512 and nothing");
  }
}

}  // namespace
}  // namespace brisk::test
