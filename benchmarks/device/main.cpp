// Speed of the matrix kernels on the device here, one line a product: TFLOP/s of the median of several timed bursts.
//   device_benchmark [f16|bf16|f32]
// benchmarks/device/torch_kernels.py prints the same products as PyTorch computes them.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "brisk/error.h"
#include "brisk/kernels.h"

namespace {

using brisk::DType;
namespace kernels = brisk::kernels;

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(error));
}

/// Device memory of zeros; what is multiplied does not change the time but for the power it takes, so values are small
/// random ones.
class Memory {
 public:
  Memory(int64_t elements, DType dtype) {
    const auto bytes = static_cast<size_t>(std::max<int64_t>(elements, 1) * brisk::size_of(dtype));
    check(cudaMalloc(&data_, bytes));
    check(cudaMemset(data_, 0, bytes));
    if (elements == 0 || dtype == DType::i32 || dtype == DType::u8) return;
    kernels::random_uniform(
        {.dtype = dtype, .key = 7, .run = run_state(), .sample_elements = elements, .samples = 1, .y = data_}, nullptr);
  }
  ~Memory() { cudaFree(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void* data() const { return data_; }

 private:
  static const kernels::RunState* run_state() {
    static const kernels::RunState* state = [] {
      void* memory = nullptr;
      check(cudaMalloc(&memory, sizeof(kernels::RunState)));
      check(cudaMemset(memory, 0, sizeof(kernels::RunState)));
      return static_cast<const kernels::RunState*>(memory);
    }();
    return state;
  }
  void* data_ = nullptr;
};

/// Median seconds of one call.
double seconds_of(const std::function<void(cudaStream_t)>& call) {
  cudaStream_t stream = nullptr;
  cudaEvent_t start = nullptr, end = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  check(cudaEventCreate(&start));
  check(cudaEventCreate(&end));
  constexpr int kBursts = 7, kCalls = 10;
  std::vector<double> seconds;
  for (int burst = 0; burst < kBursts + 1; ++burst) {
    check(cudaEventRecord(start, stream));
    for (int i = 0; i < kCalls; ++i) call(stream);
    check(cudaEventRecord(end, stream));
    check(cudaEventSynchronize(end));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start, end));
    if (burst > 0) seconds.push_back(milliseconds * 1e-3 / kCalls);  // the first warms up
  }
  check(cudaEventDestroy(start));
  check(cudaEventDestroy(end));
  check(cudaStreamDestroy(stream));
  std::nth_element(seconds.begin(), seconds.begin() + kBursts / 2, seconds.end());
  return seconds[kBursts / 2];
}

void print(const std::string& what, DType dtype, double flops, double seconds) {
  std::printf("%-44s %-5s %10.1f us %8.1f TFLOP/s\n", what.c_str(), brisk::name(dtype), seconds * 1e6,
              flops / seconds * 1e-12);
}

void gemm(int64_t m, int64_t n, int64_t k, DType dtype) {
  const Memory a(m * k, dtype), b(n * k, dtype), d(m * n, dtype), counters(kernels::kCounterBytes / 4, DType::i32);
  check(cudaMemset(counters.data(), 0, kernels::kCounterBytes));
  kernels::GemmOptions options{.a = a.data(),
                               .b = b.data(),
                               .b_transposed = true,
                               .counters = static_cast<int32_t*>(counters.data()),
                               .d = d.data(),
                               .d_dtype = dtype,
                               .dtype = dtype,
                               .k = k,
                               .m = m,
                               .n = n};
  const Memory workspace(kernels::gemm_workspace_bytes(options), DType::u8);
  options.workspace = workspace.data();
  options.workspace_bytes = kernels::gemm_workspace_bytes(options);
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  print("linear " + std::to_string(m) + " x " + std::to_string(k) + " -> " + std::to_string(n), dtype, flops,
        seconds_of([&](cudaStream_t stream) { kernels::gemm(options, stream); }));
}

/// Forward, data gradient and weight gradient of a 3x3 convolution with padding 1.
void conv(int64_t batch, int64_t channels, int64_t size, DType dtype) {
  const kernels::Conv2dShape shape{.batch = batch,
                                   .channels = channels,
                                   .height = size,
                                   .kernel = {3, 3},
                                   .out_channels = channels,
                                   .padding = {1, 1},
                                   .width = size};
  const int64_t pixels = batch * size * size;
  const Memory x(pixels * channels, dtype), y(pixels * channels, dtype), w(channels * channels * 9, dtype),
      dw(channels * channels * 9, DType::f32), counters(kernels::kCounterBytes / 4, DType::i32);
  check(cudaMemset(counters.data(), 0, kernels::kCounterBytes));
  auto* const counts = static_cast<int32_t*>(counters.data());
  kernels::Conv2dOptions forward{
      .counters = counts, .dtype = dtype, .input = x.data(), .output = y.data(), .shape = shape, .weights = w.data()};
  kernels::Conv2dInputGradientOptions data{.counters = counts,
                                           .dtype = dtype,
                                           .input_gradient = x.data(),
                                           .output_gradient = y.data(),
                                           .shape = shape,
                                           .weights = w.data()};
  kernels::Conv2dWeightGradientOptions weight{.counters = counts,
                                              .dtype = dtype,
                                              .input = x.data(),
                                              .output_gradient = y.data(),
                                              .shape = shape,
                                              .weight_gradient = static_cast<float*>(dw.data())};
  forward.workspace_bytes = kernels::conv2d_workspace_bytes(forward);
  data.workspace_bytes = kernels::conv2d_input_gradient_workspace_bytes(data);
  weight.workspace_bytes = kernels::conv2d_weight_gradient_workspace_bytes(weight);
  const Memory workspace(std::max({forward.workspace_bytes, data.workspace_bytes, weight.workspace_bytes}), DType::u8);
  forward.workspace = data.workspace = weight.workspace = workspace.data();
  const double flops = 18.0 * static_cast<double>(pixels) * static_cast<double>(channels * channels);
  const std::string sizes =
      std::to_string(batch) + " x " + std::to_string(channels) + " x " + std::to_string(size) + "^2";
  print("conv 3x3 forward " + sizes, dtype, flops, seconds_of([&](cudaStream_t s) { kernels::conv2d(forward, s); }));
  print("conv 3x3 data gradient " + sizes, dtype, flops,
        seconds_of([&](cudaStream_t s) { kernels::conv2d_input_gradient(data, s); }));
  print("conv 3x3 weight gradient " + sizes, dtype, flops,
        seconds_of([&](cudaStream_t s) { kernels::conv2d_weight_gradient(weight, s); }));
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const std::string wanted = count > 1 ? arguments[1] : "f16";
    const DType dtype = wanted == "f32" ? DType::f32 : wanted == "bf16" ? DType::bf16 : DType::f16;
    for (const int64_t size : {4096, 8192, 1024}) gemm(size, size, size, dtype);
    gemm(64, 500, 800, dtype);
    conv(128, 64, 56, dtype);
    conv(128, 128, 28, dtype);
    conv(128, 256, 14, dtype);
    conv(128, 512, 7, dtype);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "device_benchmark: %s\n", error.what());
    return 1;
  }
}
