// Each launcher of a build without CUDA is there and says what is missing.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "brisk/error.h"
#include "brisk/kernels.h"

namespace brisk {
namespace {

template <class Call>
std::string text_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string expected(const std::string& launcher) {
  return "Error [backend] kernels::" + launcher +
         ": this build has no CUDA; configure with -DBRISK_CUDA=ON (toolkit >= 12)";
}

TEST(NoCuda, EachLauncherSaysSo) {
  std::set<std::string> called;
#define BRISK_LAUNCHER(name, Options)                                                      \
  EXPECT_EQ(text_of([] { kernels::name(kernels::Options{}, nullptr); }), expected(#name)); \
  called.insert(#name);
#include "launchers.inc"
  for (const char* name : {"adamw", "elementwise", "gemm", "negative_log_likelihood_gradient"}) {
    EXPECT_EQ(called.count(name), 1U) << name;
  }
}

}  // namespace
}  // namespace brisk
