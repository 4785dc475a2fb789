// Matrix multiplication against sums in double, on all kernels that sizes and types lead to.
#include "brisk/kernels/gemm.h"

#include <limits>

#include "kernels/matrix/choose.h"
#include "support/error_text.h"
#include "tests/kernels/matrix_support.h"

namespace brisk::kernels {
namespace {

using simt::DeviceBuffer;

/// Which optional inputs a case has.
struct Extras {
  bool bias = false, residual = false, statistics = false;
};

/// What one run left.
template <class Out>
struct Result {
  std::vector<Out> d;
  std::vector<float> statistics;
};

template <class T, class Out>
struct Problem {
  explicit Problem(const GemmOptions& sizes, Extras with = {}) : options(sizes), extras(with) {
    options.dtype = dtype_of<T>();
    options.d_dtype = dtype_of<Out>();
    a = uniform<T>(options.m * options.k, 1);
    b = uniform<T>(options.k * options.n, 2);
    bias = uniform<float>(options.n, 3);
    residual = uniform<Out>(options.m * options.n, 4);
    before = uniform<Out>(options.m * options.n, 5);
  }

  Result<Out> run() const {
    const DeviceBuffer<T> a_memory(a), b_memory(b);
    const DeviceBuffer<float> bias_memory(bias);
    const DeviceBuffer<Out> residual_memory(residual);
    DeviceBuffer<Out> d_memory(before.size());
    if (options.accumulate) d_memory.upload(before);
    const int64_t tiles = gemm_statistics_tiles(options);
    const DeviceBuffer<float> statistics_memory(static_cast<size_t>(tiles * 2 * options.n));
    GemmOptions o = options;
    o.a = a_memory.data();
    o.b = b_memory.data();
    o.d = d_memory.data();
    if (extras.bias) o.bias = bias_memory.data();
    if (extras.residual) o.residual = residual_memory.data();
    if (extras.statistics) o.statistics = statistics_memory.data();
    Borrowed borrowed(gemm_workspace_bytes(o));
    borrowed.lend(o);
    gemm(o, nullptr);
    Result<Out> result{d_memory.download(), {}};
    if (extras.statistics) result.statistics = statistics_memory.download();
    borrowed.expect_counters_zero();
    return result;
  }

  Exact exact(int64_t row, int64_t column) const {
    Exact sum;
    for (int64_t k = 0; k < options.k; ++k) {
      const size_t at_a = static_cast<size_t>(options.a_transposed ? k * options.m + row : row * options.k + k);
      const size_t at_b = static_cast<size_t>(options.b_transposed ? column * options.k + k : k * options.n + column);
      sum.add_product(to_float(a[at_a]), to_float(b[at_b]));
    }
    sum.scale(options.alpha);
    const auto at = static_cast<size_t>(row * options.n + column);
    if (extras.bias) sum.add(bias[static_cast<size_t>(column)]);
    if (extras.residual) sum.add(to_float(residual[at]));
    if (options.accumulate) sum.add(to_float(before[at]));
    return sum;
  }

  void expect_right(const Result<Out>& result) const {
    for (int64_t row = 0; row < options.m; ++row) {
      for (int64_t column = 0; column < options.n; ++column) {
        Exact want = exact(row, column);
        want.value = activated(options.activation, want.value);  // no activation is steeper than silu's 1.1
        const float got = to_float(result.d[static_cast<size_t>(row * options.n + column)]);
        ASSERT_NEAR(got, want.value, 1.1 * bound<Out>(want, options.k + 64)) << "row " << row << ", column " << column;
      }
    }
    if (extras.statistics) {
      const int64_t tiles = gemm_statistics_tiles(options);
      expect_statistics(result.statistics, result.d, options.m, options.n, tile_rows(options.m, tiles));
    }
  }

  GemmOptions options;
  Extras extras;
  std::vector<T> a, b;
  std::vector<float> bias;
  std::vector<Out> residual, before;
};

std::string text(const GemmOptions& o) {
  return std::to_string(o.m) + " x " + std::to_string(o.n) + " x " + std::to_string(o.k) +
         (o.a_transposed ? " A^T" : "") + (o.b_transposed ? " B^T" : "") + " tile " +
         std::to_string(static_cast<int>(o.tile)) + " split " + std::to_string(o.split_k);
}

template <class T, class Out>
void expect_product(const GemmOptions& sizes, Extras extras = {}) {
  const Problem<T, Out> problem(sizes, extras);
  SCOPED_TRACE(text(problem.options) + " " + name(problem.options.dtype) + " to " + name(problem.options.d_dtype));
  problem.expect_right(problem.run());
}

/// Every type, to f32 and to itself.
void expect_products(const GemmOptions& sizes, Extras extras = {}) {
  expect_product<float, float>(sizes, extras);
  expect_product<__half, __half>(sizes, extras);
  expect_product<__half, float>(sizes, extras);
  expect_product<__nv_bfloat16, __nv_bfloat16>(sizes, extras);
}

template <class F>
void for_each_transpose(GemmOptions sizes, F f) {
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      sizes.a_transposed = a_transposed;
      sizes.b_transposed = b_transposed;
      f(sizes);
    }
  }
}

TEST(Gemm, SmallOddAndRaggedSizes) {
  const int64_t sizes[][3] = {{1, 1, 1}, {17, 9, 33}, {64, 64, 32}, {65, 10, 84}, {3, 130, 20}, {70, 72, 136}};
  for (const auto& size : sizes) {
    for_each_transpose({.k = size[2], .m = size[0], .n = size[1]}, [](const GemmOptions& o) { expect_products(o); });
  }
}

TEST(Gemm, EveryTileWholeAndCutOff) {
  for (const MatrixTile tile : {MatrixTile::m128n128, MatrixTile::m128n64, MatrixTile::m64n64}) {
    for_each_transpose({.k = 200, .m = 136, .n = 152, .tile = tile}, [](GemmOptions o) {
      expect_product<__half, __half>(o);
      o.split_k = 3;
      expect_product<__nv_bfloat16, float>(o);
    });
    expect_product<__half, float>({.k = 256, .m = 256, .n = 128, .tile = tile});
  }
}

TEST(Gemm, EverySchedule) {
  simt::for_each_schedule(
      [] {
        for (const MatrixTile tile : {MatrixTile::m128n128, MatrixTile::m64n64}) {
          const Extras all{true, true, true};
          expect_product<__half, __half>(
              {.b_transposed = true, .k = 168, .m = 72, .n = 136, .split_k = 2, .tile = tile}, all);
          expect_product<__nv_bfloat16, float>({.a_transposed = true, .k = 168, .m = 72, .n = 136, .tile = tile}, all);
        }
        expect_product<__half, __half>({.k = 71, .m = 33, .n = 19, .split_k = 3}, {true, true, true});
        expect_product<float, float>({.b_transposed = true, .k = 71, .m = 33, .n = 19, .split_k = 3},
                                     {true, true, true});
      },
      6);
}

TEST(Gemm, EpiloguesInOrder) {
  for (const Activation activation :
       {Activation::none, Activation::relu, Activation::sigmoid, Activation::silu, Activation::tanh}) {
    const GemmOptions sizes{.activation = activation, .alpha = -0.75f, .k = 40, .m = 37, .n = 20};
    for (const bool bias : {false, true}) {
      for (const bool residual : {false, true}) expect_products(sizes, {bias, residual, true});
    }
    GemmOptions odd = sizes;
    odd.n = 21;
    expect_products(odd, {true, true, true});
  }
}

TEST(Gemm, AddsToWhatIsThere) {
  for_each_transpose({.accumulate = true, .alpha = 0.5f, .k = 72, .m = 40, .n = 24}, [](GemmOptions o) {
    expect_product<float, float>(o, {true, false, true});
    expect_product<__half, float>(o);
    o.split_k = 3;
    expect_product<__nv_bfloat16, float>(o, {false, true, true});
    o.n = 23;
    expect_product<__half, float>(o);
  });
}

TEST(Gemm, SlicesOfKAreAddedInOrder) {
  for (const int split : {0, 1, 2, 5, 64}) {
    GemmOptions o{.a_transposed = true, .k = 1000, .m = 24, .n = 72, .split_k = split};
    expect_product<__half, float>(o, {false, false, true});
    expect_product<float, float>(o);
    Problem<__half, float> problem(o);
    const std::vector<float> first = problem.run().d;
    simt::for_each_schedule([&] { EXPECT_EQ(problem.run().d, first) << "the same bits"; });
  }
}

TEST(Gemm, WithoutWorkspaceKIsWhole) {
  const Problem<__half, float> whole({.k = 256, .m = 16, .n = 16, .split_k = 1});
  GemmOptions o = whole.options;
  o.split_k = 4;
  EXPECT_GT(gemm_workspace_bytes(o), 0);
  const DeviceBuffer<__half> a(whole.a), b(whole.b);
  const DeviceBuffer<float> d(256);
  o.a = a.data();
  o.b = b.data();
  o.d = d.data();
  gemm(o, nullptr);
  EXPECT_EQ(d.download(), whole.run().d);
}

TEST(Gemm, ResidualMayBeTheOutput) {
  const Problem<__half, __half> problem({.k = 16, .m = 9, .n = 24}, {false, true, false});
  const DeviceBuffer<__half> a(problem.a), b(problem.b), d(problem.residual);
  GemmOptions o = problem.options;
  o.a = a.data();
  o.b = b.data();
  o.d = d.data();
  o.residual = d.data();
  gemm(o, nullptr);
  problem.expect_right({d.download(), {}});
}

TEST(Gemm, NanAndInfinityArrive) {
  Problem<__half, __half> problem({.activation = Activation::relu, .k = 8, .m = 2, .n = 8});
  for (__half& x : problem.a) x = from_float<__half>(200);
  for (__half& x : problem.b) x = from_float<__half>(200);
  problem.a[0] = from_float<__half>(std::numeric_limits<float>::quiet_NaN());
  const std::vector<__half> d = problem.run().d;
  for (size_t i = 0; i < 8; ++i) EXPECT_TRUE(std::isnan(to_float(d[i]))) << "a row with NaN, after relu";
  for (size_t i = 8; i < 16; ++i) EXPECT_EQ(to_float(d[i]), std::numeric_limits<float>::infinity()) << "beyond f16";
}

#if defined(BRISK_SIMT)  // a device does not count them
TEST(Gemm, NoBankConflicts) {
  const auto before = simt::stats();
  for (const MatrixTile tile : {MatrixTile::m128n128, MatrixTile::m128n64, MatrixTile::m64n64}) {
    for_each_transpose({.k = 96, .m = 128, .n = 128, .tile = tile},
                       [](const GemmOptions& o) { expect_product<__half, float>(o); });
  }
  EXPECT_GT(simt::stats().ldmatrix_phases, before.ldmatrix_phases);
  EXPECT_EQ(simt::stats().ldmatrix_conflicts, before.ldmatrix_conflicts);
}
#endif

TEST(Gemm, TileAndSlicesFollowTheSizes) {
  const auto choice = [](int64_t m, int64_t n, int64_t k) {
    return choose({.aligned = true, .dtype = DType::f16, .k = k, .m = m, .n = n});
  };
  EXPECT_EQ(choice(4096, 4096, 4096).tile, MatrixTile::m128n128);
  EXPECT_EQ(choice(4096, 4096, 4096).slices, 1);
  EXPECT_EQ(choice(200704, 64, 576).columns, 64) << "no wider than the output";
  EXPECT_GT(choice(64, 576, 200704).slices, 8) << "a weight gradient: few tiles, long sums";
  EXPECT_EQ(choice(16, 16, 32).slices, 1) << "nothing to split";
  EXPECT_EQ(choice(int64_t{1} << 30, 1 << 12, 64).slices, 1);
}

TEST(Gemm, WorkspaceIsAllThatSlicesTake) {
  const GemmOptions o{.dtype = DType::f16, .k = 512, .m = 65, .n = 64, .split_k = 4, .tile = MatrixTile::m64n64};
  EXPECT_EQ(gemm_workspace_bytes(o), 2 * 4 * 64 * 64 * 4);
  EXPECT_EQ(gemm_statistics_tiles(o), 2);
}

TEST(Gemm, RefusesWhatItCannotDo) {
  const DeviceBuffer<float> memory(1024);
  const DeviceBuffer<int32_t> counters(std::vector<int32_t>(kCounterBytes / 4));
  const GemmOptions good{.a = memory.data(), .b = memory.data(), .d = memory.data() + 512, .k = 8, .m = 8, .n = 8};
  const auto refusal = [&](auto change) {
    GemmOptions o = good;
    change(o);
    return test::error_text([&] { gemm(o, nullptr); });
  };
  EXPECT_EQ(refusal([](GemmOptions& o) { o.m = 0; }), "Error [option] kernels::gemm.m = 0: must be 1 to 2^31 - 1025");
  EXPECT_EQ(refusal([](GemmOptions& o) { o.k = INT32_MAX; }),
            "Error [option] kernels::gemm.k = 2147483647: must be 1 to 2^31 - 1025");
  EXPECT_EQ(refusal([](GemmOptions& o) { o.dtype = DType::i32; }),
            "Error [option] kernels::gemm.dtype = i32: must be f32, f16 or bf16");
  EXPECT_EQ(refusal([](GemmOptions& o) { o.b = nullptr; }),
            "Error [option] kernels::gemm.b = null: must be a device pointer");
  EXPECT_EQ(refusal([](GemmOptions& o) { o.a = static_cast<const float*>(o.a) + 1; }),
            "Error [option] kernels::gemm.a: must be a multiple of 16 bytes, as memory of cudaMalloc is");
  EXPECT_EQ(refusal([](GemmOptions& o) { o.d_dtype = DType::f16; }),
            "Error [option] kernels::gemm.d_dtype = f16: must be f32 or the same as dtype");
  EXPECT_EQ(refusal([](GemmOptions& o) { o.dtype = o.d_dtype = DType::f16, o.accumulate = true; }),
            "Error [option] kernels::gemm.accumulate = 1: adds to a d of f32 only");
  EXPECT_EQ(refusal([](GemmOptions& o) { o.activation = Activation::relu, o.accumulate = true; }),
            "Error [option] kernels::gemm.accumulate = 1: goes without an activation");
  EXPECT_EQ(refusal([](GemmOptions& o) { o.split_k = 65; }),
            "Error [option] kernels::gemm.split_k = 65: must be 0 (chosen by the sizes) to 64");
  EXPECT_EQ(refusal([](GemmOptions& o) { o.processors = 0; }),
            "Error [option] kernels::gemm.processors = 0: must be 1 or more");
  const auto split = [&](auto change) {
    return refusal([&](GemmOptions& o) {
      o.k = 64, o.split_k = 4, o.workspace = o.d, o.workspace_bytes = 1 << 20, o.counters = counters.data();
      change(o);
    });
  };
  EXPECT_EQ(split([](GemmOptions& o) { o.workspace_bytes = 15; }),
            "Error [option] kernels::gemm.workspace_bytes = 15: 131072 bytes are needed; ask the launcher's "
            "_workspace_bytes");
  EXPECT_EQ(split([](GemmOptions& o) { o.counters = nullptr; }),
            "Error [option] kernels::gemm.counters = null: must be a device pointer");
  EXPECT_EQ(
      split([](GemmOptions& o) { o.m = 1 << 20, o.workspace_bytes = int64_t{1} << 40; }),
      "Error [option] kernels::gemm.split_k = 4: is for at most 1024 tiles; use 1 (more tiles fill the device alone)");
}

}  // namespace
}  // namespace brisk::kernels
