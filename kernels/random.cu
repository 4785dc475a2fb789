// Random values as pure functions of (key, attempt, sample, element). random_normal, random_uniform: a thread makes the
// four elements that one block of Philox words is for; the output is overwritten. stochastic_depth: a thread scales or
// clears the elements of 16 bytes of a row, by the row's word; in place where the caller likes. dropout is a program of
// one step (elementwise.cu).
#include <cmath>

#include "brisk/kernels/elementwise.h"
#include "brisk/kernels/random.h"
#include "kernels/common/check.h"
#include "kernels/common/cuda.h"
#include "kernels/common/philox.h"
#include "kernels/common/vector.h"

namespace brisk::kernels {
namespace {

constexpr int kThreads = 256;

struct Pair {
  float first, second;
};

/// sin and cos of 2 pi word / 2^32: the nearest quarter turn is taken out, Taylor's series does the rest.
__device__ __forceinline__ Pair sine_and_cosine(uint32_t word) {
  const uint32_t quarter = (word + (uint32_t{1} << 29)) >> 30;
  const float angle =
      static_cast<float>(static_cast<int32_t>(word - (quarter << 30))) * 0x1.921fb6p-30f;  // 2 pi / 2^32
  const float square = angle * angle;
  float s = fmaf(1.0f / 362880, square, -1.0f / 5040);
  s = fmaf(s, square, 1.0f / 120);
  s = fmaf(s, square, -1.0f / 6);
  const float sine = fmaf(angle * square, s, angle);
  float c = fmaf(-1.0f / 3628800, square, 1.0f / 40320);
  c = fmaf(c, square, -1.0f / 720);
  c = fmaf(c, square, 1.0f / 24);
  const float cosine = fmaf(square * square, c, fmaf(square, -0.5f, 1.0f));
  const bool odd = quarter & 1;
  const float sine_size = odd ? cosine : sine, cosine_size = odd ? sine : cosine;
  return {quarter & 2 ? -sine_size : sine_size, (quarter + 1) & 2 ? -cosine_size : cosine_size};
}

struct Normal {
  float mean, deviation;
  __device__ __forceinline__ void operator()(const PhiloxBlock& block, float (&value)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const float unit = (static_cast<float>(block.word[i]) + 0.5f) * 0x1p-32f;
      const float square = -2 * logf(unit), radius = square > 0 ? sqrtf(square) : 0.0f;
      const Pair turn = sine_and_cosine(block.word[i + 1]);
      value[i] = fmaf(radius * turn.second, deviation, mean);
      value[i + 1] = fmaf(radius * turn.first, deviation, mean);
    }
  }
};

struct Uniform {
  float low, width, most;  ///< the largest float below high
  __device__ __forceinline__ void operator()(const PhiloxBlock& block, float (&value)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float drawn = fmaf(static_cast<float>(block.word[i] >> 8) * 0x1p-24f, width, low);
      value[i] = drawn < most ? drawn : most;
    }
  }
};

struct Draw {
  uint64_t key;
  const RunState* run;
  int64_t samples, elements, channels, positions;
  bool vectors;  ///< four elements lie side by side, at an address that their bytes divide
};

// resources: draw_kernel: registers <= 40, static shared <= 0 bytes
template <class T, class Distribution>
__global__ void __launch_bounds__(kThreads) draw_kernel(Draw d, Distribution distribution, T* y) {
  const int64_t quarters = (d.elements + 3) / 4;
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t sample = index / quarters, quarter = index % quarters;
  if (sample >= d.samples) return;
  float value[4];
  distribution(philox(d.key, *d.run, sample, quarter), value);
  y += sample * d.elements;
  if (d.vectors) return store_floats(y + quarter * 4, value);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int64_t e = quarter * 4 + i;  // numbered channels first; channels_first of swapped sizes is its inverse
    if (e < d.elements) y[channels_first(e, d.positions, d.channels)] = from_float<T>(value[i]);
  }
}

struct Rows {
  uint64_t key;
  const RunState* run;
  int64_t count;  ///< elements in all
  int64_t rows, row_elements;
  uint32_t threshold;
  float factor;
};

// resources: stochastic_depth_kernel: registers <= 40, static shared <= 0 bytes
template <class T, int kWidth>
__global__ void __launch_bounds__(kThreads) stochastic_depth_kernel(Rows r, const T* x, T* y) {
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kWidth;
  if (i >= r.count) return;
  const int64_t line = i / r.row_elements, row = line % r.rows;
  const bool stays = pick(philox(r.key, *r.run, line / r.rows, row / 4), row % 4) >= r.threshold;
  float value[kWidth];
  load_floats(x + i, value);
#pragma unroll
  for (int k = 0; k < kWidth; ++k) value[k] = stays ? value[k] * r.factor : 0.0f;
  store_floats(y + i, value);
}

template <class Options, class Distribution>
void draw(const Options& options, Distribution distribution, const char* name, CudaStream stream) {
  check_float(options.dtype, name);
  check_option(options.samples >= 0 && options.sample_elements > 0, name, options.sample_elements,
               "elements of a sample: must be 1 or more, and samples 0 or more");
  check_option(options.channels > 0 && options.positions > 0 &&
                   options.sample_elements % (options.channels * options.positions) == 0,
               name, options.channels, "channels: with the positions, must divide the elements of a sample");
  if (options.samples == 0) return;
  check_pointer(options.run, name);
  check_pointer(options.y, name);
  const bool in_order = options.channels == 1 || options.positions == 1;
  const Draw d{options.key,
               options.run,
               options.samples,
               options.sample_elements,
               options.channels,
               options.positions,
               in_order && options.sample_elements % 4 == 0 &&
                   aligned(options.y, static_cast<uintptr_t>(4 * size_of(options.dtype)))};
  const unsigned blocks = blocks_for(options.samples * ((options.sample_elements + 3) / 4), kThreads, name);
  dispatch(options.dtype, [&](auto element) {
    using T = decltype(element);
    check_launch(name, launch(draw_kernel<T, Distribution>, blocks, kThreads, 0, stream, d, distribution,
                              static_cast<T*>(options.y)));
  });
}

/// word < threshold with probability rate.
uint32_t threshold_of(double rate, const char* field) {
  check_option(rate >= 0 && rate < 1, field, rate, "must be in [0, 1)");
  return static_cast<uint32_t>(rate * 0x1p32);
}

}  // namespace

void dropout(const DropoutOptions& options, CudaStream stream) {
  ElementwiseStep step;
  step.operation = Elementwise::dropout;
  step.key = options.key;
  step.threshold = threshold_of(options.rate, "kernels::dropout.rate");
  step.constant = static_cast<float>(1 / (1 - options.rate));
  const int64_t dims[] = {options.samples, options.sample_elements};
  const ElementwiseSource source{options.x, options.dtype};
  const ElementwiseOutput output{options.y, options.dtype, 1};
  elementwise({.channels = options.channels,
               .dims = dims,
               .outputs = {&output, 1},
               .positions = options.positions,
               .run = options.run,
               .sample_elements = options.sample_elements,
               .sources = {&source, 1},
               .steps = {&step, 1}},
              stream);
}

void random_normal(const RandomNormalOptions& options, CudaStream stream) {
  check_option(std::isfinite(options.deviation) && options.deviation >= 0, "kernels::random_normal.deviation",
               options.deviation, "must be 0 or more");
  draw(options, Normal{static_cast<float>(options.mean), static_cast<float>(options.deviation)},
       "kernels::random_normal", stream);
}

void random_uniform(const RandomUniformOptions& options, CudaStream stream) {
  check_option(options.high > options.low, "kernels::random_uniform.high", options.high, "must be larger than low");
  const auto low = static_cast<float>(options.low), high = static_cast<float>(options.high);
  draw(options, Uniform{low, static_cast<float>(options.high - options.low), std::nextafter(high, low)},
       "kernels::random_uniform", stream);
}

void stochastic_depth(const StochasticDepthOptions& options, CudaStream stream) {
  const char* const name = "kernels::stochastic_depth";
  check_float(options.dtype, "kernels::stochastic_depth.dtype");
  Rows r{};
  r.threshold = threshold_of(options.rate, "kernels::stochastic_depth.rate");
  r.factor = static_cast<float>(1 / (1 - options.rate));
  check_option(options.rows > 0, "kernels::stochastic_depth.rows", options.rows, "must be 1 or more");
  check_option(options.row_elements > 0, "kernels::stochastic_depth.row_elements", options.row_elements,
               "must be 1 or more");
  check_option(options.samples >= 0, "kernels::stochastic_depth.samples", options.samples, "must be 0 or more");
  r.key = options.key, r.run = options.run, r.rows = options.rows, r.row_elements = options.row_elements;
  r.count = options.samples * options.rows * options.row_elements;
  if (r.count == 0) return;
  check_pointer(options.run, "kernels::stochastic_depth.run");
  check_pointer(options.x, "kernels::stochastic_depth.x");
  check_pointer(options.y, "kernels::stochastic_depth.y");
  dispatch(options.dtype, [&](auto element) {
    using T = decltype(element);
    constexpr int kWidth = 16 / sizeof(T);
    const auto* x = static_cast<const T*>(options.x);
    auto* y = static_cast<T*>(options.y);
    const bool vectors = options.row_elements % kWidth == 0 && aligned(x, 16) && aligned(y, 16);
    const unsigned blocks = blocks_for(r.count, kThreads * (vectors ? kWidth : 1), "kernels::stochastic_depth.samples");
    check_launch(name, vectors ? launch(stochastic_depth_kernel<T, kWidth>, blocks, kThreads, 0, stream, r, x, y)
                               : launch(stochastic_depth_kernel<T, 1>, blocks, kThreads, 0, stream, r, x, y));
  });
}

}  // namespace brisk::kernels
