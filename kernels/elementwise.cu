// Chains of elementwise operations. One kernel interprets any program: a thread computes 8 consecutive elements of the
// outputs, step by step, in f32. The last result stays in registers, where most steps read it; a result that is read
// later waits in shared memory, in a column of the thread's own. Sources are read where a step asks for them, by 16
// bytes where they lie as the outputs do or run along the innermost dimension. All outputs are overwritten, after all
// steps, so that they may share storage with sources that lie as they do. All branches on the program are uniform.
#include <algorithm>
#include <array>
#include <limits>

#include "kernels/common/check.h"
#include "kernels/common/cuda.h"
#include "kernels/common/functions.h"
#include "kernels/common/philox.h"
#include "kernels/common/vector.h"
#include "kernels/elementwise_values.h"

namespace brisk::kernels {
namespace {

constexpr int kThreads = 128;
constexpr int kWidth = 8;
static_assert(kElementwiseKept * kWidth * sizeof(float) * kThreads <= 48 * 1024, "shared memory without an opt-in");

struct Source {
  const void* data;
  int64_t strides[kElementwiseDims];
  DType dtype;
  bool direct;
};

struct Step {
  int8_t operand[3];
  int8_t result;
  Elementwise operation;
  Relation relation;
  bool chosen;
  float constant;
  float high;  ///< pow: what constant, the exponent, lost by rounding
  uint32_t threshold;
  uint64_t key;
};

struct Output {
  void* data;
  DType dtype;
  int8_t place;
};

/// The whole program, a kernel parameter: it lies in constant memory.
struct Program {
  int64_t total;  ///< elements of an output
  int64_t dims[kElementwiseDims];
  int64_t sample_elements, channels, positions;
  const RunState* run;
  int32_t rank, steps, outputs;
  bool vectors;  ///< direct sources and outputs are aligned to 16 bytes
  Source source[kElementwiseSources];
  Step step[kElementwiseSteps];
  Output output[kElementwiseOutputs];
};
static_assert(sizeof(Program) <= 4096, "kernel parameters on every device");

__device__ __forceinline__ float load_element(const void* data, DType dtype, int64_t i) {
  if (dtype == DType::f32) return static_cast<const float*>(data)[i];
  if (dtype == DType::f16) return to_float(static_cast<const __half*>(data)[i]);
  return to_float(static_cast<const __nv_bfloat16*>(data)[i]);
}

__device__ __forceinline__ void store_element(void* data, DType dtype, int64_t i, float value) {
  if (dtype == DType::f32) {
    static_cast<float*>(data)[i] = value;
  } else if (dtype == DType::f16) {
    static_cast<__half*>(data)[i] = from_float<__half>(value);
  } else {
    static_cast<__nv_bfloat16*>(data)[i] = from_float<__nv_bfloat16>(value);
  }
}

/// From an address that is aligned to 16 bytes.
__device__ __forceinline__ void load_aligned(const void* data, DType dtype, int64_t i, float (&r)[kWidth]) {
  if (dtype == DType::f32) {
    load_floats(static_cast<const float*>(data) + i, r);
  } else if (dtype == DType::f16) {
    load_floats(static_cast<const __half*>(data) + i, r);
  } else {
    load_floats(static_cast<const __nv_bfloat16*>(data) + i, r);
  }
}

/// r[k] = value, k known at run time only: an array that is indexed so would lie in memory.
__device__ __forceinline__ void put(float (&r)[kWidth], int k, float value) {
#pragma unroll
  for (int i = 0; i < kWidth; ++i) r[i] = i == k ? value : r[i];
}

__device__ __forceinline__ float get(const float (&r)[kWidth], int k) {
  float value = r[0];
#pragma unroll
  for (int i = 1; i < kWidth; ++i) value = i == k ? r[i] : value;
  return value;
}

/// Where element e of the outputs lies in a broadcast source; run: how many elements from it on differ in the innermost
/// dimension alone.
template <class Index>
__device__ __forceinline__ int64_t find(const Program& p, const Source& source, Index e, Index& run) {
  int64_t offset = 0;
  run = 0;
#pragma unroll 1
  for (int d = p.rank - 1; d >= 0; --d) {
    const Index size = static_cast<Index>(p.dims[d]), rest = e / size, at = e - rest * size;
    if (d == p.rank - 1) run = size - at;
    offset += static_cast<int64_t>(at) * source.strides[d];
    e = rest;
  }
  return offset;
}

template <class Index>
__device__ __forceinline__ void load_broadcast(const Program& p, const Source& source, int64_t first, int count,
                                               float (&r)[kWidth]) {
  const int64_t stride = source.strides[p.rank - 1], size = source.dtype == DType::f32 ? 4 : 2;
  Index run;
  const int64_t offset = find(p, source, static_cast<Index>(first), run);
  const bool whole = count == kWidth && run >= kWidth;
  if (whole && stride == 0) {
    const float value = load_element(source.data, source.dtype, offset);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) r[i] = value;
  } else if (whole && stride == 1 && (reinterpret_cast<uintptr_t>(source.data) + offset * size) % 16 == 0) {
    load_aligned(source.data, source.dtype, offset, r);
  } else {
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      put(r, i, load_element(source.data, source.dtype, find(p, source, static_cast<Index>(first + i), run)));
    }
  }
}

template <class Index>
__device__ __forceinline__ void load_source(const Program& p, const Source& source, int64_t first, int count,
                                            float (&r)[kWidth]) {
  if (!source.direct) {
    load_broadcast<Index>(p, source, first, count, r);
  } else if (p.vectors && count == kWidth) {
    load_aligned(source.data, source.dtype, first, r);
  } else {
#pragma unroll 1
    for (int i = 0; i < count; ++i) put(r, i, load_element(source.data, source.dtype, first + i));
  }
}

__device__ __forceinline__ float4* kept_column(float4* kept, int slot) {
  return kept + slot * (2 * kThreads) + threadIdx.x;
}

__device__ __forceinline__ void keep(float4* column, const float (&r)[kWidth]) {
  column[0] = make_float4(r[0], r[1], r[2], r[3]);
  column[kThreads] = make_float4(r[4], r[5], r[6], r[7]);
}

__device__ __forceinline__ void recall(const float4* column, float (&r)[kWidth]) {
  const float4 low = column[0], high = column[kThreads];
  r[0] = low.x, r[1] = low.y, r[2] = low.z, r[3] = low.w;
  r[4] = high.x, r[5] = high.y, r[6] = high.z, r[7] = high.w;
}

__device__ __forceinline__ bool holds(Relation relation, float x, float y) {
  switch (relation) {
    case Relation::less:
      return x < y;
    case Relation::less_equal:
      return x <= y;
    case Relation::greater:
      return x > y;
    case Relation::greater_equal:
      return x >= y;
    case Relation::equal:
      return x == y;
    default:
      return x != y;
  }
}

/// dy for the operand that was taken, half of it for each of two equal ones.
__device__ __forceinline__ float choice_gradient(float dy, bool other_taken, bool same) {
  return other_taken ? 0.0f : same ? dy * 0.5f : dy;
}

/// The operations of many instructions, of one element. a is the first operand, b the second.
__device__ __forceinline__ float heavy(const Step& s, float a, float b) {
  switch (s.operation) {
    case Elementwise::elu:
      return a > 0 ? a : s.constant * expm1f(a);
    case Elementwise::gelu:
      return gelu(a);
    case Elementwise::gelu_tanh:
      return gelu_tanh(a);
    case Elementwise::silu:
      return silu(a);
    case Elementwise::softplus:
      return softplus(a);
    case Elementwise::tanh:
      return tanhf(a);
    case Elementwise::sigmoid:
      return sigmoid(a);
    case Elementwise::exp:
      return expf(a);
    case Elementwise::log:
      return logf(a);
    case Elementwise::sqrt:
      return sqrtf(a);
    case Elementwise::div:
      return a / b;
    case Elementwise::reciprocal:
      return s.constant / a;
    case Elementwise::pow:
      return power(a, s.constant, s.high);
    case Elementwise::huber:
      return huber(a, s.constant);
    case Elementwise::compare:
      return holds(s.relation, a, b) ? 1.0f : 0.0f;
    case Elementwise::compare_scalar:
      return holds(s.relation, a, s.constant) ? 1.0f : 0.0f;
    case Elementwise::gelu_gradient:
      return a * gelu_gradient(b);
    case Elementwise::gelu_tanh_gradient:
      return a * gelu_tanh_gradient(b);
    case Elementwise::silu_gradient:
      return a * silu_gradient(b);
    default:
      return a;
  }
}

template <class F>
__device__ __forceinline__ void each(const F& f) {
#pragma unroll
  for (int i = 0; i < kWidth; ++i) f(i);
}

/// value = the step's function of (value, b, c): operations of a few instructions.
__device__ __forceinline__ bool light(const Step& s, float (&v)[kWidth], const float (&b)[kWidth],
                                      const float (&c)[kWidth]) {
  const float k = s.constant, high = s.high;
  switch (s.operation) {
    case Elementwise::copy:
      return true;
    case Elementwise::add:
      return each([&](int i) { v[i] = v[i] + b[i]; }), true;
    case Elementwise::sub:
      return each([&](int i) { v[i] = v[i] - b[i]; }), true;
    case Elementwise::mul:
      return each([&](int i) { v[i] = v[i] * b[i]; }), true;
    case Elementwise::minimum:
      return each([&](int i) { v[i] = is_nan(v[i]) || v[i] < b[i] ? v[i] : b[i]; }), true;
    case Elementwise::maximum:
      return each([&](int i) { v[i] = is_nan(v[i]) || v[i] > b[i] ? v[i] : b[i]; }), true;
    case Elementwise::relu:
      return each([&](int i) { v[i] = relu(v[i]); }), true;
    case Elementwise::leaky_relu:
      return each([&](int i) { v[i] = v[i] > 0 ? v[i] : k * v[i]; }), true;
    case Elementwise::abs:
      return each([&](int i) { v[i] = fabsf(v[i]); }), true;
    case Elementwise::clamp:
      return each([&](int i) { v[i] = at_most(high, at_least(k, v[i])); }), true;
    case Elementwise::scale:
      return each([&](int i) { v[i] = v[i] * k; }), true;
    case Elementwise::add_scalar:
      return each([&](int i) { v[i] = v[i] + k; }), true;
    case Elementwise::where:
      return each([&](int i) { v[i] = v[i] == 0 ? c[i] : b[i]; }), true;
    case Elementwise::where_gradient:
      return each([&](int i) { v[i] = (v[i] == 0) != s.chosen ? b[i] : 0.0f; }), true;
    case Elementwise::minimum_gradient:
      return each([&](int i) { v[i] = choice_gradient(v[i], c[i] < b[i], c[i] == b[i]); }), true;
    case Elementwise::maximum_gradient:
      return each([&](int i) { v[i] = choice_gradient(v[i], c[i] > b[i], c[i] == b[i]); }), true;
    case Elementwise::relu_gradient:
      return each([&](int i) { v[i] = relu_gradient(v[i], b[i]); }), true;
    case Elementwise::leaky_relu_gradient:
      return each([&](int i) { v[i] = is_nan(b[i]) ? b[i] : b[i] > 0 ? v[i] : k * v[i]; }), true;
    case Elementwise::elu_gradient:
      return each([&](int i) { v[i] = b[i] > 0 ? v[i] : v[i] * (b[i] + k); }), true;
    case Elementwise::tanh_gradient:
      return each([&](int i) { v[i] = v[i] * fmaf(-b[i], b[i], 1.0f); }), true;
    case Elementwise::sigmoid_gradient:
      return each([&](int i) { v[i] = v[i] * (b[i] * (1 - b[i])); }), true;
    case Elementwise::abs_gradient:
      return each([&](int i) { v[i] = is_nan(b[i]) ? b[i] : b[i] > 0 ? v[i] : b[i] < 0 ? -v[i] : 0.0f; }), true;
    case Elementwise::clamp_gradient:
      return each([&](int i) { v[i] = is_nan(b[i]) ? b[i] : k < b[i] && b[i] < high ? v[i] : 0.0f; }), true;
    case Elementwise::huber_gradient:
      return each([&](int i) { v[i] = v[i] * at_least(-k, at_most(k, b[i])); }), true;
    default:
      return false;
  }
}

/// Keeps an element whose word is at least the threshold, scaled.
__device__ __forceinline__ float kept_or_zero(const Step& s, uint32_t word, float x) {
  return word >= s.threshold && s.constant > 0 ? x * s.constant : 0.0f;
}

__device__ __forceinline__ void drop(const Program& p, const Step& s, int64_t first, int count, float (&v)[kWidth]) {
  const RunState run = *p.run;
  if (p.positions == 1 && p.sample_elements % 4 == 0) {  // four elements in a row have one block of words
#pragma unroll
    for (int half = 0; half < kWidth; half += 4) {
      const int64_t e = first + half;
      const PhiloxBlock block = philox(s.key, run, e / p.sample_elements, e % p.sample_elements / 4);
#pragma unroll
      for (int i = 0; i < 4; ++i) v[half + i] = kept_or_zero(s, block.word[i], v[half + i]);
    }
    return;
  }
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    const int64_t e = channels_first((first + i) % p.sample_elements, p.channels, p.positions);
    const PhiloxBlock block = philox(s.key, run, (first + i) / p.sample_elements, e / 4);
    put(v, i, kept_or_zero(s, pick(block, e % 4), get(v, i)));
  }
}

__device__ __forceinline__ void run_step(const Program& p, const Step& s, int64_t first, int count, float (&v)[kWidth],
                                         float (&b)[kWidth], const float (&c)[kWidth]) {
  if (s.operation == Elementwise::dropout) return drop(p, s, first, count, v);
  if (light(s, v, b, c)) return;
#pragma unroll 1
  for (int i = 0; i < kWidth; ++i) {  // one copy of the code: the elements go round
    const float next = heavy(s, v[0], b[0]);
#pragma unroll
    for (int k = 0; k + 1 < kWidth; ++k) v[k] = v[k + 1], b[k] = b[k + 1];
    v[kWidth - 1] = next;
  }
}

// resources: elementwise_kernel: registers <= 72, static shared <= 0 bytes
template <class Index>
__global__ void __launch_bounds__(kThreads) elementwise_kernel(const __grid_constant__ Program p) {
  BRISK_DYNAMIC_SHARED(float4, kept);
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kWidth;
  if (first >= p.total) return;
  const int count = p.total - first < kWidth ? static_cast<int>(p.total - first) : kWidth;
  float v[kWidth] = {}, b[kWidth] = {}, c[kWidth] = {};
#pragma unroll 1
  for (int k = 0; k < p.steps; ++k) {
    const Step& s = p.step[k];
    float r[kWidth] = {};
#pragma unroll 1
    for (int o = 2; o >= 0; --o) {  // ends with the first operand, in r
      const int place = s.operand[o];
      if (place == kNoPlace) continue;
      if (place == kRegistersPlace) {
        each([&](int i) { r[i] = v[i]; });
      } else if (place >= kKeptPlace) {
        recall(kept_column(kept, place - kKeptPlace), r);
      } else {
        load_source<Index>(p, p.source[place], first, count, r);
      }
      if (o == 2) each([&](int i) { c[i] = r[i]; });
      if (o == 1) each([&](int i) { b[i] = r[i]; });
    }
    each([&](int i) { v[i] = r[i]; });
    run_step(p, s, first, count, v, b, c);
    if (s.result != kNoPlace) keep(kept_column(kept, s.result - kKeptPlace), v);
  }
#pragma unroll 1
  for (int k = 0; k < p.outputs; ++k) {
    const Output& out = p.output[k];
    float r[kWidth];
    each([&](int i) { r[i] = v[i]; });
    if (out.place != kRegistersPlace) recall(kept_column(kept, out.place - kKeptPlace), r);
    if (!p.vectors || count < kWidth) {
#pragma unroll 1
      for (int i = 0; i < count; ++i) store_element(out.data, out.dtype, first + i, get(r, i));
    } else if (out.dtype == DType::f32) {
      store_floats(static_cast<float*>(out.data) + first, r);
    } else if (out.dtype == DType::f16) {
      store_floats(static_cast<__half*>(out.data) + first, r);
    } else {
      store_floats(static_cast<__nv_bfloat16*>(out.data) + first, r);
    }
  }
}

// ---- launcher

/// Merges neighbouring dimensions wherever every broadcast source allows it, and drops dimensions of size 1.
void set_dims(const ElementwiseOptions& options, Program& p) {
  p.rank = 0;
  for (size_t d = 0; d < options.dims.size(); ++d) {
    const int64_t size = options.dims[d];
    if (size == 1) continue;
    bool merges = p.rank > 0;
    for (size_t i = 0; i < options.sources.size(); ++i) {
      if (p.source[i].direct) continue;
      merges = merges && p.source[i].strides[p.rank - 1] == options.sources[i].strides[d] * size;
    }
    if (!merges) ++p.rank;
    p.dims[p.rank - 1] = merges ? p.dims[p.rank - 1] * size : size;
    for (size_t i = 0; i < options.sources.size(); ++i) {
      if (!p.source[i].direct) p.source[i].strides[p.rank - 1] = options.sources[i].strides[d];
    }
  }
  if (p.rank == 0) p.dims[p.rank++] = 1;
}

template <size_t kMost, class T>
void check_size(std::span<const T> list, const char* field) {
  check_option(!list.empty() && list.size() <= kMost, field, list.size(),
               ("entries: must be 1 to " + std::to_string(kMost)).c_str());
}

void set_sources(const ElementwiseOptions& options, Program& p) {
  check_size<kElementwiseSources>(options.sources, "kernels::elementwise.sources");
  for (size_t i = 0; i < options.sources.size(); ++i) {
    const ElementwiseSource& from = options.sources[i];
    check_float(from.dtype, "kernels::elementwise.sources.dtype");
    check_pointer(from.data, "kernels::elementwise.sources.data");
    check_option(from.strides.empty() || from.strides.size() == options.dims.size(),
                 "kernels::elementwise.sources.strides", from.strides.size(),
                 "entries: must be one a dimension, or none");
    p.source[i].data = from.data;
    p.source[i].dtype = from.dtype;
    p.source[i].direct = from.strides.empty();
    p.vectors = p.vectors && (!p.source[i].direct || aligned(from.data, 16));
  }
}

void check_operand(int32_t value, size_t sources, size_t step, const char* field) {
  check_option(value >= 0 && value < static_cast<int32_t>(sources + step), field, value,
               "must name a source or the result of an earlier step");
}

void set_steps(const ElementwiseOptions& options, Program& p) {
  check_size<kElementwiseSteps>(options.steps, "kernels::elementwise.steps");
  p.steps = static_cast<int32_t>(options.steps.size());
  for (size_t k = 0; k < options.steps.size(); ++k) {
    const ElementwiseStep& from = options.steps[k];
    const int operands = operands_of(from.operation);
    check_operand(from.a, options.sources.size(), k, "kernels::elementwise.steps.a");
    if (operands > 1) check_operand(from.b, options.sources.size(), k, "kernels::elementwise.steps.b");
    if (operands > 2) check_operand(from.c, options.sources.size(), k, "kernels::elementwise.steps.c");
    Step& s = p.step[k];
    s.operation = from.operation;
    s.relation = from.relation;
    s.chosen = from.chosen;
    s.constant = from.constant;
    s.high = from.high;
    s.threshold = from.threshold;
    s.key = from.key;
    if (from.operation == Elementwise::pow) {
      const double exponent =
          std::min(std::max(from.exponent, -0x1p40), 0x1p40);  // beyond, all but 1 becomes 0 or infinity
      s.constant = static_cast<float>(exponent);
      s.high = static_cast<float>(exponent - static_cast<double>(s.constant));
    }
    if (from.operation == Elementwise::dropout) {
      check_pointer(options.run, "kernels::elementwise.run");
      check_option(options.sample_elements > 0, "kernels::elementwise.sample_elements", options.sample_elements,
                   "must be 1 or more");
      check_option(options.channels > 0, "kernels::elementwise.channels", options.channels, "must be 1 or more");
      check_option(options.positions > 0 && options.sample_elements % (options.channels * options.positions) == 0,
                   "kernels::elementwise.positions", options.positions,
                   "must be 1 or more, and with the channels divide the sample");
    }
  }
}

void set_outputs(const ElementwiseOptions& options, Program& p) {
  check_size<kElementwiseOutputs>(options.outputs, "kernels::elementwise.outputs");
  p.outputs = static_cast<int32_t>(options.outputs.size());
  const auto sources = static_cast<int32_t>(options.sources.size());
  for (size_t i = 0; i < options.outputs.size(); ++i) {
    const ElementwiseOutput& from = options.outputs[i];
    check_float(from.dtype, "kernels::elementwise.outputs.dtype");
    check_pointer(from.data, "kernels::elementwise.outputs.data");
    check_option(from.value >= sources && from.value < sources + p.steps, "kernels::elementwise.outputs.value",
                 from.value, "must name the result of a step");
    p.output[i].data = from.data;
    p.output[i].dtype = from.dtype;
    p.vectors = p.vectors && aligned(from.data, 16);
  }
}

void set_places(const ElementwisePlaces& places, Program& p) {
  for (int32_t k = 0; k < p.steps; ++k) {
    const auto at = static_cast<size_t>(k);
    std::copy(places.operand[at].begin(), places.operand[at].end(), p.step[k].operand);
    p.step[k].result = places.result[at];
  }
  for (int32_t i = 0; i < p.outputs; ++i) p.output[i].place = places.output[static_cast<size_t>(i)];
}

}  // namespace

void elementwise(const ElementwiseOptions& options, CudaStream stream) {
  Program p{};
  p.vectors = true;
  p.run = options.run;
  p.sample_elements = options.sample_elements;
  p.channels = options.channels;
  p.positions = options.channels == 1 ? 1 : options.positions;
  check_size<kElementwiseDims>(options.dims, "kernels::elementwise.dims");
  p.total = 1;
  for (const int64_t size : options.dims) {
    check_option(size >= 0, "kernels::elementwise.dims", size, "must be 0 or more");
    p.total *= size;
  }
  set_sources(options, p);
  set_steps(options, p);
  set_outputs(options, p);
  const ElementwisePlaces places =
      place_values(options.outputs, static_cast<int>(options.sources.size()), options.steps);
  check_option(
      places.fits, "kernels::elementwise.steps", options.steps.size(),
      ("keep more than " + std::to_string(kElementwiseKept) + " results at once; run them as two programs").c_str());
  set_places(places, p);
  if (p.total == 0) return;
  set_dims(options, p);
  const unsigned blocks = blocks_for(p.total, kThreads * kWidth, "kernels::elementwise.dims");
  const auto shared = static_cast<size_t>(places.slots) * kWidth * sizeof(float) * kThreads;
  const bool small = p.total <= std::numeric_limits<int32_t>::max();
  check_launch("kernels::elementwise", small
                                           ? launch(elementwise_kernel<uint32_t>, blocks, kThreads, shared, stream, p)
                                           : launch(elementwise_kernel<int64_t>, blocks, kThreads, shared, stream, p));
}

}  // namespace brisk::kernels
