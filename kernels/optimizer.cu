// The update. Walks go over a table of tensors: a block takes one chunk of kUpdateChunk elements, which it finds by
// bisection, 16 bytes a thread and turn. gradient_stats reads the gradients and writes partials, which a last block
// adds in order. The walks overwrite parameters, moments, averages and shadows in place, commit_staged the buffers,
// unless the status is set or an element is not finite: then no block writes anything. Formulas: PyTorch's SGD, Adam
// (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019).
#include <cmath>

#include "brisk/kernels/optimizer.h"
#include "kernels/common/check.h"
#include "kernels/common/cuda.h"
#include "kernels/common/reduce.h"
#include "kernels/common/vector.h"

namespace brisk::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kWidth = 4;
constexpr int kTurns = static_cast<int>(kUpdateChunk) / (kThreads * kWidth);

/// PyTorch's clip_grad_norm_ adds it to the norm that it divides by.
constexpr double kClipEpsilon = 1e-6;

/// The tensor that a chunk belongs to: the last one that begins at or before it.
template <class Tensor>
__device__ __forceinline__ int64_t find_tensor(const Tensor* table, int64_t tensors, int64_t chunk) {
  int64_t low = 0, high = tensors;  // low begins at or before it, high does not
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    if (table[middle].first_chunk <= chunk) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

__device__ __forceinline__ int32_t elements_of(int64_t count, int64_t first) {
  return static_cast<int32_t>(count - first < kUpdateChunk ? count - first : kUpdateChunk);
}

__device__ __forceinline__ bool aligned_to(const void* pointer, int bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

__device__ __forceinline__ float value_or(const float* pointer, float otherwise) {
  return pointer != nullptr ? *pointer : otherwise;
}

/// True when the update must move nothing.
__device__ __forceinline__ bool skips(const float* stats, const Status* status) {
  return (status != nullptr && status->kind != Status::kNone) || (stats != nullptr && stats[1] != 0);
}

// ---- statistics

struct Partial {
  double squares;  ///< of the finite elements
  double nonfinite;
};
static_assert(sizeof(Partial) == gradient_stats_workspace_bytes(1));

struct Smaller {
  __device__ __forceinline__ int64_t operator()(int64_t a, int64_t b) const { return a < b ? a : b; }
};
struct LargerWord {
  __device__ __forceinline__ uint32_t operator()(uint32_t a, uint32_t b) const { return a > b ? a : b; }
};

constexpr uint32_t kInfinityBits = 0x7f800000;

/// Squares are taken of elements divided by the power of two of the chunk's largest: none overflows, none that counts
/// is lost. Elements that are not finite are counted and left out.
// resources: gradient_squares_kernel: registers <= 56, static shared <= 128 bytes
__global__ void __launch_bounds__(kThreads)
    gradient_squares_kernel(const UpdateTensor* table, int64_t tensors, Partial* partials) {
  BRISK_SHARED(uint32_t, words, [kThreads / kWarpThreads]);
  BRISK_SHARED(float, sums, [kThreads / kWarpThreads]);
  const int64_t chunk = blockIdx.x;
  const UpdateTensor& tensor = table[find_tensor(table, tensors, chunk)];
  const int64_t first = (chunk - tensor.first_chunk) * kUpdateChunk;
  const float* g = tensor.gradient + first;
  const int count = elements_of(tensor.count, first);
  const bool vectors = aligned_to(g, 16);
  float value[kTurns][kWidth];
  uint32_t largest = 0;
  float nonfinite = 0;
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int at = (turn * kThreads + static_cast<int>(threadIdx.x)) * kWidth;
    if (vectors && at + kWidth <= count) {
      load_floats(g + at, value[turn]);
    } else {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) value[turn][i] = at + i < count ? g[at + i] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const uint32_t size = __float_as_uint(value[turn][i]) & 0x7fffffff;
      if (size >= kInfinityBits) {
        value[turn][i] = 0;
        nonfinite += 1;
      } else {
        largest = size > largest ? size : largest;
      }
    }
  }
  largest = block_reduce<kThreads>(largest, LargerWord(), words);
  const int biased = static_cast<int>(largest >> 23), power = biased < 1 ? -126 : biased > 253 ? 126 : biased - 127;
  const float inverse = __uint_as_float(static_cast<uint32_t>(127 - power) << 23);
  float sum = 0;
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const float scaled = value[turn][i] * inverse;
      sum = fmaf(scaled, scaled, sum);
    }
  }
  sum = block_reduce<kThreads>(sum, Add(), sums);
  nonfinite = block_reduce<kThreads>(nonfinite, Add(), sums);
  if (threadIdx.x != 0) return;
  const double square_of_power = __longlong_as_double(static_cast<long long>(1023 + 2 * power) << 52);
  partials[chunk] = {static_cast<double>(sum) * square_of_power, static_cast<double>(nonfinite)};
}

struct Stats {
  int64_t chunks, tensors;
  double clip_norm;
  int32_t node;
  const float *ratio, *scale;
  const UpdateTensor* table;
  const Partial* partials;
  float* stats;
  Status* status;
};

// resources: gradient_stats_kernel: registers <= 64, static shared <= 256 bytes
__global__ void __launch_bounds__(kThreads) gradient_stats_kernel(Stats s) {
  BRISK_SHARED(double, sums, [kThreads / kWarpThreads]);
  BRISK_SHARED(int64_t, places, [kThreads / kWarpThreads]);
  Partial total{0, 0};
  int64_t bad = s.chunks;
  for (int64_t i = threadIdx.x; i < s.chunks; i += kThreads) {
    total.squares += s.partials[i].squares;
    total.nonfinite += s.partials[i].nonfinite;
    if (s.partials[i].nonfinite > 0 && i < bad) bad = i;
  }
  total.squares = block_reduce<kThreads>(total.squares, Add(), sums);
  total.nonfinite = block_reduce<kThreads>(total.nonfinite, Add(), sums);
  bad = block_reduce<kThreads>(bad, Smaller(), places);
  if (threadIdx.x != 0) return;
  const double inverse = 1 / static_cast<double>(value_or(s.scale, 1));
  const double norm = fabs(static_cast<double>(value_or(s.ratio, 1))) * inverse * sqrt(total.squares);
  const double clip = s.clip_norm > 0 && norm > s.clip_norm ? s.clip_norm / (norm + kClipEpsilon) : 1;
  s.stats[0] = static_cast<float>(norm);
  s.stats[1] = static_cast<float>(total.nonfinite);
  s.stats[2] = static_cast<float>(clip * inverse);
  const int64_t tensor = bad < s.chunks ? find_tensor(s.table, s.tensors, bad) : -1;
  s.stats[3] = static_cast<float>(tensor);
  if (tensor < 0 || s.status == nullptr) return;
  if (atomicCAS(&s.status->kind, Status::kNone, Status::kNonfiniteGradient) != Status::kNone) return;
  s.status->node = s.node;
  s.status->sample = s.table[tensor].slot;
}

// ---- walks

/// What all walks share. table: null for the one tensor that `one` is.
struct Walk {
  const UpdateTensor* table;
  int64_t tensors;
  UpdateTensor one;
  float average_decay, average_rest;
  double learning_rate;
  const float *rate, *ratio, *stats;
  const Status* status;
};

/// A block's part of its tensor.
struct Chunk {
  int32_t count;  ///< 0: the update is skipped
  bool vectors;
  DType shadow_type;
  float rate_scale, weight_decay;
  const float* gradient;
  float *parameter, *moment1, *moment2, *average;
  void* shadow;
};

template <class T>
__device__ __forceinline__ T* advance(T* pointer, int64_t elements) {
  return pointer != nullptr ? pointer + elements : nullptr;
}

__device__ __forceinline__ Chunk find_chunk(const Walk& walk, int64_t chunk) {
  const UpdateTensor* tensor =
      walk.table != nullptr ? walk.table + find_tensor(walk.table, walk.tensors, chunk) : &walk.one;
  const int64_t first = (chunk - tensor->first_chunk) * kUpdateChunk;
  Chunk c;
  c.count = skips(walk.stats, walk.status) ? 0 : elements_of(tensor->count, first);
  c.shadow_type = tensor->shadow_type;
  c.rate_scale = tensor->rate_scale;
  c.weight_decay = tensor->weight_decay;
  c.gradient = tensor->gradient + first;
  c.parameter = tensor->parameter + first;
  c.moment1 = advance(tensor->moment1, first);
  c.moment2 = advance(tensor->moment2, first);
  c.average = advance(tensor->average, first);
  c.shadow = advance(static_cast<uint16_t*>(tensor->shadow), first);
  c.vectors = aligned_to(c.gradient, 16) && aligned_to(c.parameter, 16) && aligned_to(c.moment1, 16) &&
              aligned_to(c.moment2, 16) && aligned_to(c.average, 16) && aligned_to(c.shadow, 8);
  return c;
}

/// Factor of all gradients.
__device__ __forceinline__ float ratio_of(const Walk& walk) {
  return value_or(walk.ratio, 1) * (walk.stats != nullptr ? walk.stats[2] : 1.0f);
}

struct SgdSettings {
  float momentum, undamped;  ///< 1 - dampening
  bool nesterov, begins;
  const float* first;  ///< in place of begins
};

template <bool kMomentum>
struct Sgd {
  using Settings = SgdSettings;
  static constexpr int kMoments = kMomentum ? 1 : 0;
  float ratio, rate, decay, momentum, undamped;
  bool begins, nesterov;

  static __device__ __forceinline__ Sgd make(const Walk& walk, const Settings& s, const Chunk& chunk) {
    const float rate = value_or(walk.rate, static_cast<float>(walk.learning_rate));
    const bool begins = s.first != nullptr ? *s.first != 0 : s.begins;
    return {ratio_of(walk), rate * chunk.rate_scale, chunk.weight_decay, s.momentum, s.undamped, begins, s.nesterov};
  }

  __device__ __forceinline__ void operator()(float& w, float g, float& buffer, float&) const {
    float step = fmaf(decay, w, ratio * g);
    if constexpr (kMomentum) {
      buffer = begins ? step : fmaf(momentum, buffer, undamped * step);
      step = nesterov ? fmaf(momentum, buffer, step) : buffer;
    }
    w = fmaf(-rate, step, w);
  }
};

struct AdamSettings {
  float beta1, beta2, rest1, rest2, epsilon;  ///< rest: 1 - beta
  bool decoupled;
  double bias1, bias2;
  const float *bias1_at, *bias2_at;  ///< in place of them
};

struct Adam {
  using Settings = AdamSettings;
  static constexpr int kMoments = 2;
  float ratio, step, shrink, coupled, correction, beta1, beta2, rest1, rest2, epsilon;

  static __device__ __forceinline__ Adam make(const Walk& walk, const Settings& s, const Chunk& chunk) {
    const double learning_rate = walk.rate != nullptr ? static_cast<double>(*walk.rate) : walk.learning_rate;
    const double rate = learning_rate * static_cast<double>(chunk.rate_scale);
    const double decay = static_cast<double>(chunk.weight_decay);
    const double bias1 = s.bias1_at != nullptr ? static_cast<double>(*s.bias1_at) : s.bias1;
    const double bias2 = s.bias2_at != nullptr ? static_cast<double>(*s.bias2_at) : s.bias2;
    Adam a;
    a.ratio = ratio_of(walk);
    a.step = static_cast<float>(rate / bias1);
    a.shrink = s.decoupled ? static_cast<float>(rate * decay) : 0.0f;
    a.coupled = s.decoupled ? 0.0f : chunk.weight_decay;
    a.correction = static_cast<float>(1 / sqrt(bias2));
    a.beta1 = s.beta1, a.beta2 = s.beta2, a.rest1 = s.rest1, a.rest2 = s.rest2, a.epsilon = s.epsilon;
    return a;
  }

  __device__ __forceinline__ void operator()(float& w, float g, float& m, float& v) const {
    const float gradient = fmaf(coupled, w, ratio * g);
    w = fmaf(-shrink, w, w);
    m = fmaf(beta1, m, rest1 * gradient);
    v = fmaf(beta2, v, rest2 * gradient * gradient);
    w = fmaf(-step, m / fmaf(sqrtf(v), correction, epsilon), w);
  }
};

template <int kCount>
__device__ __forceinline__ void store_shadow(const Chunk& c, int at, const float (&w)[kCount]) {
  if (c.shadow_type == DType::f16) {
    store_floats(static_cast<__half*>(c.shadow) + at, w);
  } else {
    store_floats(static_cast<__nv_bfloat16*>(c.shadow) + at, w);
  }
}

/// kCount elements from `at` on.
template <int kCount, class Rule>
__device__ __forceinline__ void update(const Walk& walk, const Chunk& c, const Rule& rule, int at) {
  float w[kCount], g[kCount], m[kCount] = {}, v[kCount] = {}, average[kCount] = {};
  load_floats(c.parameter + at, w);
  load_floats(c.gradient + at, g);
  if constexpr (Rule::kMoments > 0) load_floats(c.moment1 + at, m);
  if constexpr (Rule::kMoments > 1) load_floats(c.moment2 + at, v);
  if (c.average != nullptr) load_floats(c.average + at, average);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    rule(w[i], g[i], m[i], v[i]);
    average[i] = fmaf(walk.average_decay, average[i], walk.average_rest * w[i]);
  }
  store_floats(c.parameter + at, w);
  if constexpr (Rule::kMoments > 0) store_floats(c.moment1 + at, m);
  if constexpr (Rule::kMoments > 1) store_floats(c.moment2 + at, v);
  if (c.average != nullptr) store_floats(c.average + at, average);
  if (c.shadow != nullptr) store_shadow(c, at, w);
}

// resources: walk_kernel: registers <= 64, static shared <= 256 bytes
template <class Rule>
__global__ void __launch_bounds__(kThreads)
    walk_kernel(const __grid_constant__ Walk walk, const __grid_constant__ typename Rule::Settings settings) {
  BRISK_SHARED(Chunk, chunk, [1]);
  BRISK_SHARED(Rule, rule, [1]);
  if (threadIdx.x == 0) {  // in double where it matters: once a block
    chunk[0] = find_chunk(walk, blockIdx.x);
    rule[0] = Rule::make(walk, settings, chunk[0]);
  }
  __syncthreads();
  const Chunk& c = chunk[0];
  const Rule r = rule[0];
  for (int at = static_cast<int>(threadIdx.x) * kWidth; at < c.count; at += kThreads * kWidth) {
    if (c.vectors && at + kWidth <= c.count) {
      update<kWidth>(walk, c, r, at);
    } else {
      for (int i = at; i < at + kWidth && i < c.count; ++i) update<1>(walk, c, r, i);
    }
  }
}

// resources: commit_staged_kernel: registers <= 40, static shared <= 0 bytes
__global__ void __launch_bounds__(kThreads)
    commit_staged_kernel(const StagedTensor* table, int64_t tensors, const float* stats, const Status* status) {
  if (skips(stats, status)) return;
  const int64_t chunk = blockIdx.x;
  const StagedTensor& tensor = table[find_tensor(table, tensors, chunk)];
  const int64_t first = (chunk - tensor.first_chunk) * kUpdateChunk;
  const float* from = tensor.from + first;
  float* to = tensor.to + first;
  const int count = elements_of(tensor.count, first);
  const bool vectors = aligned_to(from, 16) && aligned_to(to, 16);
  for (int at = static_cast<int>(threadIdx.x) * kWidth; at < count; at += kThreads * kWidth) {
    if (vectors && at + kWidth <= count) {
      store(to + at, load<kWidth>(from + at));
    } else {
      for (int i = at; i < at + kWidth && i < count; ++i) to[i] = from[i];
    }
  }
}

// ---- scalars

/// One thread: counters of the update, and the loss scale where there is one.
// resources: scale_update_kernel: registers <= 40, static shared <= 0 bytes
__global__ void scale_update_kernel(const __grid_constant__ ScaleUpdateOptions o) {
  if (o.status != nullptr && o.status->kind != Status::kNone) return;
  const double scale = o.scale != nullptr ? static_cast<double>(*o.scale) : 1;
  double next = scale;
  if (skips(o.stats, nullptr)) {
    next = fmax(scale * o.backoff, o.minimum);
    o.counters[1] = 0;
    o.counters[2] += 1;
    o.counters[3] += 1;
  } else {
    o.counters[0] += 1;
    o.counters[1] += 1;
    o.counters[2] = 0;
    if (o.counters[1] >= o.interval) {
      next = fmin(scale * o.growth, o.maximum);
      o.counters[1] = 0;
    }
  }
  if (o.scale != nullptr) *o.scale = static_cast<float>(next);
}

// resources: select_rates_kernel: registers <= 40, static shared <= 0 bytes
__global__ void __launch_bounds__(kThreads) select_rates_kernel(const __grid_constant__ SelectRatesOptions o) {
  const float* row = o.table + o.counters[0] % o.rows * o.columns;
  for (int64_t i = threadIdx.x; i < o.columns; i += kThreads) o.scalars[i] = row[i];
}

// ---- launchers

std::string field_of(const char* name, const char* field) { return std::string("kernels::") + name + "." + field; }

template <class Table>
unsigned table_blocks(const Table* table, int64_t tensors, int64_t chunks, const char* name) {
  check_pointer(table, field_of(name, "table").c_str());
  check_option(tensors > 0, field_of(name, "tensors").c_str(), tensors, "must be 1 or more");
  check_option(chunks >= 0, field_of(name, "chunks").c_str(), chunks, "must be what number_chunks returned");
  return blocks_for(chunks, 1, field_of(name, "chunks").c_str());
}

void check_unit(double value, const char* name, const char* field) {
  check_option(value >= 0 && value < 1, field_of(name, field).c_str(), value, "must be in [0, 1)");
}

/// Checks what the optimizers share; `moments` of the one parameter.
template <class Options>
Walk make_walk(const Options& o, const char* name, std::initializer_list<const void*> moments) {
  check_unit(o.average_decay, name, "average_decay");
  check_option(std::isfinite(o.learning_rate) && o.learning_rate >= 0, field_of(name, "learning_rate").c_str(),
               o.learning_rate, "must be 0 or more");
  check_option(o.update >= 1, field_of(name, "update").c_str(), o.update, "must be 1 or more");
  Walk walk{};
  if (o.table == nullptr) {
    check_option(o.count >= 0, field_of(name, "count").c_str(), o.count, "must be 0 or more");
    check_option(std::isfinite(o.weight_decay) && o.weight_decay >= 0, field_of(name, "weight_decay").c_str(),
                 o.weight_decay, "must be 0 or more");
    check_option(o.shadow_type == DType::f16 || o.shadow_type == DType::bf16, field_of(name, "shadow_type").c_str(),
                 o.shadow_type, "must be f16 or bf16");
    check_pointer(o.gradient, field_of(name, "gradient").c_str());
    check_pointer(o.parameter, field_of(name, "parameter").c_str());
    for (const void* moment : moments) check_pointer(moment, field_of(name, "moment1 or moment2").c_str());
    walk.one.count = o.count;
    walk.one.gradient = o.gradient;
    walk.one.moment1 = o.moment1;
    walk.one.parameter = o.parameter;
    walk.one.shadow = o.shadow;
    walk.one.shadow_type = o.shadow_type;
    walk.one.weight_decay = static_cast<float>(o.weight_decay);
  }
  walk.table = o.table;
  walk.tensors = o.tensors;
  walk.average_decay = static_cast<float>(o.average_decay);
  walk.average_rest = static_cast<float>(1 - o.average_decay);
  walk.learning_rate = o.learning_rate;
  walk.rate = o.rate;
  walk.ratio = o.ratio;
  walk.stats = o.stats;
  walk.status = o.status;
  return walk;
}

template <class Options>
unsigned walk_blocks(const Options& o, const char* name) {
  if (o.table != nullptr) return table_blocks(o.table, o.tensors, o.chunks, name);
  return blocks_for(o.count, kUpdateChunk, field_of(name, "count").c_str());
}

template <class Rule>
void launch_walk(const Walk& walk, const typename Rule::Settings& settings, unsigned blocks, const char* name,
                 CudaStream stream) {
  if (blocks == 0) return;
  check_launch((std::string("kernels::") + name).c_str(),
               launch(walk_kernel<Rule>, blocks, kThreads, 0, stream, walk, settings));
}

void adam_walk(const AdamOptions& o, bool decoupled, const char* name, CudaStream stream) {
  Walk walk = make_walk(o, name, {o.moment1, o.moment2});
  walk.one.moment2 = o.moment2;
  check_unit(o.beta1, name, "beta1");
  check_unit(o.beta2, name, "beta2");
  check_option(std::isfinite(o.epsilon) && o.epsilon >= 0, field_of(name, "epsilon").c_str(), o.epsilon,
               "must be 0 or more");
  AdamSettings s{};
  s.beta1 = static_cast<float>(o.beta1), s.beta2 = static_cast<float>(o.beta2);
  s.rest1 = static_cast<float>(1 - o.beta1), s.rest2 = static_cast<float>(1 - o.beta2);
  s.epsilon = static_cast<float>(o.epsilon);
  s.decoupled = decoupled;
  s.bias1 = 1 - std::pow(o.beta1, static_cast<double>(o.update));
  s.bias2 = 1 - std::pow(o.beta2, static_cast<double>(o.update));
  s.bias1_at = o.bias1, s.bias2_at = o.bias2;
  launch_walk<Adam>(walk, s, walk_blocks(o, name), name, stream);
}

}  // namespace

void gradient_stats(const GradientStatsOptions& options, CudaStream stream) {
  const char* const name = "gradient_stats";
  const unsigned blocks = table_blocks(options.table, options.tensors, options.chunks, name);
  check_option(std::isfinite(options.clip_norm) && options.clip_norm >= 0, "kernels::gradient_stats.clip_norm",
               options.clip_norm, "must be 0 (off) or more");
  check_pointer(options.stats, "kernels::gradient_stats.stats");
  check_option(options.workspace_bytes >= gradient_stats_workspace_bytes(options.chunks),
               "kernels::gradient_stats.workspace_bytes", options.workspace_bytes,
               "must be gradient_stats_workspace_bytes(chunks) or more");
  auto* const partials = static_cast<Partial*>(options.workspace);
  if (blocks > 0) {
    check_pointer(partials, "kernels::gradient_stats.workspace");
    check_launch("kernels::gradient_stats", launch(gradient_squares_kernel, blocks, kThreads, 0, stream, options.table,
                                                   options.tensors, partials));
  }
  const Stats s{options.chunks, options.tensors, options.clip_norm, options.node,  options.ratio,
                options.scale,  options.table,   partials,          options.stats, options.status};
  check_launch("kernels::gradient_stats", launch(gradient_stats_kernel, 1, kThreads, 0, stream, s));
}

void sgd(const SgdOptions& options, CudaStream stream) {
  const char* const name = "sgd";
  check_option(std::isfinite(options.momentum) && options.momentum >= 0, "kernels::sgd.momentum", options.momentum,
               "must be 0 or more");
  check_option(std::isfinite(options.dampening), "kernels::sgd.dampening", options.dampening, "must be finite");
  const bool momentum = options.momentum != 0;
  const Walk walk = momentum ? make_walk(options, name, {options.moment1}) : make_walk(options, name, {});
  const SgdSettings s{static_cast<float>(options.momentum), static_cast<float>(1 - options.dampening), options.nesterov,
                      options.update == 1, options.first};
  const unsigned blocks = walk_blocks(options, name);
  if (momentum) {
    launch_walk<Sgd<true>>(walk, s, blocks, name, stream);
  } else {
    launch_walk<Sgd<false>>(walk, s, blocks, name, stream);
  }
}

void adam(const AdamOptions& options, CudaStream stream) { adam_walk(options, false, "adam", stream); }
void adamw(const AdamOptions& options, CudaStream stream) { adam_walk(options, true, "adamw", stream); }

void scale_update(const ScaleUpdateOptions& options, CudaStream stream) {
  check_pointer(options.counters, "kernels::scale_update.counters");
  check_option(options.backoff > 0 && options.backoff <= 1, "kernels::scale_update.backoff", options.backoff,
               "must be in (0, 1]");
  check_option(std::isfinite(options.growth) && options.growth >= 1, "kernels::scale_update.growth", options.growth,
               "must be 1 or more");
  check_option(options.interval >= 1, "kernels::scale_update.interval", options.interval, "must be 1 or more");
  check_option(options.minimum > 0 && options.minimum <= options.maximum, "kernels::scale_update.minimum",
               options.minimum, "must be more than 0, and the maximum at most");
  check_launch("kernels::scale_update", launch(scale_update_kernel, 1, 1, 0, stream, options));
}

void commit_staged(const CommitStagedOptions& options, CudaStream stream) {
  const unsigned blocks = table_blocks(options.table, options.tensors, options.chunks, "commit_staged");
  if (blocks == 0) return;
  check_launch("kernels::commit_staged", launch(commit_staged_kernel, blocks, kThreads, 0, stream, options.table,
                                                options.tensors, options.stats, options.status));
}

void select_rates(const SelectRatesOptions& options, CudaStream stream) {
  check_option(options.columns >= 1, "kernels::select_rates.columns", options.columns, "must be 1 or more");
  check_option(options.rows >= 1, "kernels::select_rates.rows", options.rows, "must be 1 or more");
  check_pointer(options.counters, "kernels::select_rates.counters");
  check_pointer(options.scalars, "kernels::select_rates.scalars");
  check_pointer(options.table, "kernels::select_rates.table");
  check_launch("kernels::select_rates", launch(select_rates_kernel, 1, kThreads, 0, stream, options));
}

}  // namespace brisk::kernels
