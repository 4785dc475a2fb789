// Softmax on the device against its definition in double.
#include "brisk/kernels/softmax.h"

#include <limits>

#include "kernels/values.h"
#include "support/error_text.h"

namespace brisk::kernels {
namespace {

using test::Values;

struct Case {
  size_t outer, size, inner;
  DType dtype;
  size_t skew = 0;
  size_t count() const { return outer * size * inner; }
  /// Calls f(at) for each line; at(k) is its element k.
  template <class F>
  void each_line(F f) const {
    for (size_t o = 0; o < outer; ++o)
      for (size_t j = 0; j < inner; ++j) f([=, this](size_t k) { return (o * size + k) * inner + j; });
  }
  std::string text() const {
    return std::to_string(outer) + " x " + std::to_string(size) + " x " + std::to_string(inner) + " " + name(dtype);
  }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : test::kFloatTypes) {
    for (const auto& [outer, size, inner] : {std::array<size_t, 3>{1, 1, 1},
                                             {13, 10, 1},
                                             {9, 64, 1},
                                             {3, 1003, 1},
                                             {2, 4096, 1},
                                             {3, 5, 7},
                                             {1, 300, 2}}) {
      all.push_back({outer, size, inner, dtype});
    }
    all.push_back({5, 40, 1, dtype, 1});
  }
  return all;
}

std::vector<double> defined(const Case& c, const std::vector<double>& x, bool logarithm) {
  std::vector<double> y(x.size());
  c.each_line([&](auto at) {
    double largest = -HUGE_VAL, sum = 0;
    for (size_t k = 0; k < c.size; ++k) largest = std::fmax(largest, x[at(k)]);
    for (size_t k = 0; k < c.size; ++k) sum += std::exp(x[at(k)] - largest);
    for (size_t k = 0; k < c.size; ++k) {
      y[at(k)] = logarithm ? x[at(k)] - largest - std::log(sum) : std::exp(x[at(k)] - largest) / sum;
    }
  });
  return y;
}

void run(const Case& c, const Values& x, const Values& y, bool logarithm) {
  (logarithm ? log_softmax : softmax)({.dtype = c.dtype,
                                       .inner = static_cast<int64_t>(c.inner),
                                       .outer = static_cast<int64_t>(c.outer),
                                       .size = static_cast<int64_t>(c.size),
                                       .x = x.data(),
                                       .y = y.data()},
                                      nullptr);
}

TEST(KernelSoftmax, AgreesWithItsDefinition) {
  for (const Case& c : cases()) {
    for (const bool logarithm : {false, true}) {
      SCOPED_TRACE(c.text() + (logarithm ? " logarithm" : ""));
      const Values x(c.dtype, test::random_numbers(c.count(), 1, -8, 8), c.skew);
      const auto got = test::same_under_schedules([&]() -> std::vector<std::vector<double>> {
        const Values y(c.dtype, c.count(), c.skew);
        run(c, x, y, logarithm);
        return {y.get()};
      });
      test::expect_near("y", c.dtype, got[0], defined(c, x.given(), logarithm), logarithm ? 1e-5 : 2e-6);
      const Values within(c.dtype, x.given(), c.skew);
      run(c, within, within, logarithm);
      EXPECT_EQ(within.get(), got[0]) << "in place";
    }
  }
}

TEST(KernelSoftmax, GradientAgreesWithItsDefinition) {
  for (const Case& c : cases()) {
    for (const bool logarithm : {false, true}) {
      SCOPED_TRACE(c.text() + (logarithm ? " logarithm" : ""));
      const Values y(c.dtype, defined(c, test::random_numbers(c.count(), 1), logarithm), c.skew);
      const Values dy(c.dtype, test::random_numbers(c.count(), 2), c.skew);
      const auto got = test::same_under_schedules([&]() -> std::vector<std::vector<double>> {
        const Values dx(c.dtype, c.count(), c.skew);
        (logarithm ? log_softmax_gradient : softmax_gradient)({.dtype = c.dtype,
                                                               .dx = dx.data(),
                                                               .dy = dy.data(),
                                                               .inner = static_cast<int64_t>(c.inner),
                                                               .outer = static_cast<int64_t>(c.outer),
                                                               .size = static_cast<int64_t>(c.size),
                                                               .y = y.data()},
                                                              nullptr);
        return {dx.get()};
      });
      std::vector<double> dx(c.count());
      c.each_line([&](auto at) {
        double sum = 0;
        for (size_t k = 0; k < c.size; ++k) sum += dy.given()[at(k)] * (logarithm ? 1 : y.given()[at(k)]);
        for (size_t k = 0; k < c.size; ++k) {
          const double d = dy.given()[at(k)], out = y.given()[at(k)];
          dx[at(k)] = logarithm ? d - std::exp(out) * sum : out * (d - sum);
        }
      });
      test::expect_near("dx", c.dtype, got[0], dx, 1e-5);
    }
  }
}

/// NU01, NU02: each row has its own largest number taken off; what is far below becomes 0, not NaN.
TEST(KernelSoftmax, NU01AndNU02) {
  const double inf = HUGE_VAL, nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::vector<double>> rows = {{1000, 0, -1000},  {-431, 279, 427},      {5, 5, 5},
                                                 {-inf, 2, -inf},   {-1000, -1000, -1001}, {nan, 1, 2},
                                                 {-inf, -inf, -inf}};
  std::vector<double> x;
  for (const auto& row : rows) x.insert(x.end(), row.begin(), row.end());
  for (const bool strided : {false, true}) {
    // The same rows side by side, or each beside the next.
    Case c{rows.size(), 3, 1, DType::f32};
    std::vector<double> given = x;
    if (strided) {
      c = {1, 3, rows.size(), DType::f32};
      for (size_t i = 0; i < x.size(); ++i) given[i % 3 * rows.size() + i / 3] = x[i];
    }
    const Values in(DType::f32, given), out(DType::f32, given.size());
    run(c, in, out, false);
    const std::vector<double> y = out.get();
    const auto at = [&](size_t row, size_t k) { return y[strided ? k * rows.size() + row : row * 3 + k]; };
    for (size_t row = 0; row < 5; ++row) {
      double sum = 0;
      for (size_t k = 0; k < 3; ++k) sum += at(row, k);
      EXPECT_NEAR(sum, 1, 1e-6) << row;
    }
    EXPECT_EQ(at(0, 0), 1);
    EXPECT_NEAR(at(2, 1), 1.0 / 3, 1e-7);
    EXPECT_EQ(at(3, 1), 1);
    EXPECT_EQ(at(3, 0), 0);
    EXPECT_NEAR(at(4, 2), std::exp(-1) / (2 + std::exp(-1)), 1e-7);
    for (size_t k = 0; k < 3; ++k) {
      EXPECT_TRUE(std::isnan(at(5, k)));
      EXPECT_TRUE(std::isnan(at(6, k)));
    }
  }
}

TEST(KernelSoftmax, RefusesWhatItCannotDo) {
  EXPECT_EQ(test::error_text([] { log_softmax({.outer = 1, .size = 0}, nullptr); }),
            "Error [option] kernels::log_softmax.size = 0: must be 1 or more");
  EXPECT_EQ(test::error_text([] { softmax_gradient({.outer = 1, .size = 3}, nullptr); }),
            "Error [option] kernels::softmax_gradient.dy = null: must be a device pointer");
}

}  // namespace
}  // namespace brisk::kernels
