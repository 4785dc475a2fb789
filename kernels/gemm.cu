// Matrix multiplication d = activation(alpha A B + bias + residual): A [m, k] or its transpose, B [k, n] or its
// transpose, d [m, n] overwritten or (f32) added to. Tiles of A and B are copied into shared memory as they lie;
// ldmatrix transposes where the other direction is needed.
//
// Speed: mma.sync reaches about 60 to 65 % of what wgmma does on sm_90, so about three quarters of cuBLASLt at 4096^3
// in f16 is all that this kernel can reach there; on sm_80 to sm_89, mma.sync is the whole machine.
#include "brisk/kernels/gemm.h"

#include "kernels/matrix/launcher.h"
#include "kernels/matrix/sizes.h"

namespace brisk::kernels {
namespace {

// resources: gemm_kernel 128x128: registers <= 255, static shared <= 0 bytes
// resources: gemm_kernel 128x64: registers <= 192, static shared <= 0 bytes
// resources: gemm_kernel 64x64: registers <= 160, static shared <= 0 bytes
// resources: gemm_kernel f32: registers <= 255, static shared <= 0 bytes
template <class Math, class A, class B>
__global__ void __launch_bounds__(Math::kThreads, 256 / Math::kThreads)
    gemm_kernel(const __grid_constant__ typename A::Parameters a, const __grid_constant__ typename B::Parameters b,
                const __grid_constant__ Output output, const __grid_constant__ SameRow rows, int k_tiles) {
  matrix_tile<Math, A, B>(a, b, output, rows, k_tiles);
}

const OptionNames kNames("kernels::gemm");

void check(const GemmOptions& options) {
  check_data(kNames, "a", options.a);
  check_data(kNames, "b", options.b);
  check_data(kNames, "d", options.d);
  if (options.residual != nullptr) check_data(kNames, "residual", options.residual);
  check_option(options.d_dtype == DType::f32 || options.d_dtype == options.dtype, kNames("d_dtype").c_str(),
               options.d_dtype, "must be f32 or the same as dtype");
  check_option(!options.accumulate || options.d_dtype == DType::f32, kNames("accumulate").c_str(), options.accumulate,
               "adds to a d of f32 only");
  check_option(!options.accumulate || options.activation == Activation::none, kNames("accumulate").c_str(),
               options.accumulate, "goes without an activation");
}

template <class T>
typename MatrixOperand<T, 64, 128, true, false>::Parameters matrix(const void* data, int64_t rows, int64_t columns,
                                                                   bool transposed, DType dtype) {
  if (transposed) std::swap(rows, columns);
  return {static_cast<const T*>(data), static_cast<int>(rows), static_cast<int>(columns), unit_of(dtype, columns)};
}

template <bool kARows, bool kBRows>
void launch_gemm(const GemmOptions& o, const MatrixChoice& choice, bool aligned, const Output& output, dim3 grid,
                 CudaStream stream) {
  dispatch_math<kARows, kBRows, 64>(o.dtype, choice.tile, aligned, [&](auto math, auto all_aligned) {
    using Math = typename decltype(math)::type;
    using T = typename Math::T;
    using A = MatrixOperand<T, Math::kM, Math::kThreads, kARows, all_aligned()>;
    using B = MatrixOperand<T, Math::kN, Math::kThreads, kBRows, all_aligned()>;
    const auto a = matrix<T>(o.a, o.m, o.k, o.a_transposed, o.dtype);
    const auto b = matrix<T>(o.b, o.k, o.n, o.b_transposed, o.dtype);
    check_launch("kernels::gemm", launch(gemm_kernel<Math, A, B>, grid, Math::kThreads, kSharedBytes<Math>, stream,
                                         typename A::Parameters{a.data, a.rows, a.columns, a.unit},
                                         typename B::Parameters{b.data, b.rows, b.columns, b.unit}, output,
                                         SameRow{static_cast<int>(o.m)}, static_cast<int>(choice.k_tiles)));
  });
}

}  // namespace

void gemm(const GemmOptions& options, CudaStream stream) {
  const MatrixSizes sizes = sizes_of(options);
  check(options);
  MatrixChoice choice = choose(sizes);
  check_workspace(kNames, sizes, choice, options.workspace, options.workspace_bytes, options.counters);
  Output output = output_of(choice, options.n, options.workspace, options.counters);
  output.d = options.d;
  output.residual = options.residual;
  output.bias = options.bias;
  output.statistics = options.statistics;
  output.alpha = options.alpha;
  output.activation = options.activation;
  output.accumulate = options.accumulate;
  output.low = options.d_dtype != DType::f32;
  const dim3 grid = grid_of(kNames, choice, 1);
  const auto run = options.a_transposed   ? options.b_transposed ? launch_gemm<false, true> : launch_gemm<false, false>
                     : options.b_transposed ? launch_gemm<true, true>
                                          : launch_gemm<true, false>;
  run(options, choice, sizes.aligned, output, grid, stream);
}

}  // namespace brisk::kernels
