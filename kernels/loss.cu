// Losses over class labels of [rows, classes] and their gradients, accuracy, sums over rows and seeds; everything is
// overwritten. A row belongs to a warp or, with many classes, to a block. The first block also looks at all labels, so
// that the status word names the first bad one whatever block runs first. Sums over rows are added in f64 by one block.
#include "brisk/kernels/loss.h"

#include "kernels/common/softmax.h"

namespace brisk::kernels {
namespace {

constexpr int kTotalThreads = 512;

/// What all class losses know of labels.
struct Labels {
  const int64_t* label;
  const float* class_weights;
  int64_t rows, classes, ignored;
  float chosen, spread;  ///< shares of the label's class and of each class
  int32_t node;
  Status* status;

  __device__ bool allowed(int64_t value) const { return value == ignored || (value >= 0 && value < classes); }
  /// The row's class, or -1: ignored, or no class.
  __device__ int64_t of(int64_t row) const {
    const int64_t value = label[row];
    return value != ignored && value >= 0 && value < classes ? value : -1;
  }
  __device__ float weight(int64_t c) const { return class_weights != nullptr ? class_weights[c] : 1.0f; }
  __device__ float target(int64_t c, int64_t label_class, float label_weight) const {
    return spread * weight(c) + (c == label_class ? chosen * label_weight : 0.0f);
  }
};

struct Smaller {
  __device__ __forceinline__ int64_t operator()(int64_t a, int64_t b) const { return a < b ? a : b; }
};

/// Called by all threads of the first block.
__device__ void report_first_bad(const Labels& l) {
  BRISK_SHARED(int64_t, scratch, [kRowBlock / kWarpThreads]);
  int64_t first = l.rows;
  for (int64_t row = threadIdx.x; row < first; row += kRowBlock) {
    if (!l.allowed(l.label[row])) first = row;
  }
  first = block_reduce<kRowBlock>(first, Smaller(), scratch);
  if (threadIdx.x != 0 || first == l.rows) return;
  if (atomicCAS(&l.status->kind, Status::kNone, Status::kLabel) != Status::kNone) return;
  l.status->node = l.node;
  l.status->sample = first;
  l.status->value = l.label[first];
}

/// The loss from what -log p is for the label's class (times its weight where that is not 0) and, when smoothed, for
/// all.
__device__ __forceinline__ float joined(const Labels& l, float label_loss, float all) {
  return l.spread > 0 ? fmaf(l.spread, all, l.chosen * label_loss) : l.chosen * label_loss;
}

// resources: cross_entropy: registers <= 64, static shared <= 192 bytes
template <class T, int kWidth, int kThreads>
__global__ void __launch_bounds__(kRowBlock)
    cross_entropy(const T* x, T* probabilities, float* loss, float* row_weight, Labels l) {
  if (blockIdx.x == 0 && l.status != nullptr) report_first_bad(l);
  const int64_t row = row_index<kThreads>();
  if (row >= l.rows) return;
  x += row * l.classes;
  const int64_t label = l.of(row);
  const float label_x = label >= 0 ? to_float(x[label]) : 0.0f;  // read here: probabilities may be written over it
  Exponentials own = no_exponentials();
  for_vectors<kThreads, kWidth>(l.classes, [&](int64_t i) {
    float v[kWidth];
    load_floats(x + i, v);
    take(own, v);
  });
  const Exponentials e = row_reduce<kThreads>(own, JoinExponentials());
  if constexpr (kThreads == kWarpThreads) __syncwarp();  // label_x is read before another lane writes there
  const float shift = logf(e.sum), share = 1 / e.sum;
  float all = 0;
  const bool smooth = l.spread > 0 && label >= 0;
  if (probabilities != nullptr || smooth) {
    for_vectors<kThreads, kWidth>(l.classes, [&](int64_t i) {
      float v[kWidth];
      load_floats(x + i, v);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        if (smooth) {
          const float weight = l.weight(i + k);
          if (weight != 0) all = fmaf(weight, shift - (v[k] - e.largest), all);
        }
        v[k] = expf(v[k] - e.largest) * share;
      }
      if (probabilities != nullptr) store_floats(probabilities + row * l.classes + i, v);
    });
  }
  if (l.spread > 0) all = row_reduce<kThreads>(all, Add());
  if (threadIdx.x % kThreads != 0) return;
  const float weight = label >= 0 ? l.weight(label) : 0.0f;
  const float label_loss = weight > 0 ? weight * (shift - (label_x - e.largest)) : 0.0f;
  loss[row] = label >= 0 ? joined(l, label_loss, all) : 0.0f;
  row_weight[row] = weight;
}

/// Of all classes' weights, which a smoothed target holds.
template <int kThreads>
__device__ __forceinline__ float weight_sum(const Labels& l) {
  if (l.class_weights == nullptr) return static_cast<float>(l.classes);
  float sum = 0;
  for (int64_t c = threadIdx.x % kThreads; c < l.classes; c += kThreads) sum += l.class_weights[c];
  return row_reduce<kThreads>(sum, Add());
}

// resources: cross_entropy_gradient: registers <= 64, static shared <= 32 bytes
template <class T, int kWidth, int kThreads>
__global__ void __launch_bounds__(kRowBlock)
    cross_entropy_gradient(const float* dloss, const T* probabilities, T* dx, Labels l) {
  const int64_t row = row_index<kThreads>();
  if (row >= l.rows) return;
  const int64_t label = l.of(row);
  const float weight = label >= 0 ? l.weight(label) : 0.0f, scale = dloss[row];
  float all = l.chosen * weight;
  if (l.spread > 0) all = fmaf(l.spread, weight_sum<kThreads>(l), all);
  for_vectors<kThreads, kWidth>(l.classes, [&](int64_t i) {
    float p[kWidth];
    load_floats(probabilities + row * l.classes + i, p);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      p[k] = label >= 0 ? scale * fmaf(all, p[k], -l.target(i + k, label, weight)) : 0.0f;
    }
    store_floats(dx + row * l.classes + i, p);
  });
}

// resources: likelihood: registers <= 72, static shared <= 128 bytes
template <class T, int kWidth, int kThreads>
__global__ void __launch_bounds__(kRowBlock) likelihood(const T* x, float* loss, float* row_weight, Labels l) {
  if (blockIdx.x == 0 && l.status != nullptr) report_first_bad(l);
  const int64_t row = row_index<kThreads>();
  if (row >= l.rows) return;
  x += row * l.classes;
  const int64_t label = l.of(row);
  float all = 0;
  if (l.spread > 0) {
    for_vectors<kThreads, kWidth>(l.classes, [&](int64_t i) {
      float v[kWidth];
      load_floats(x + i, v);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        const float weight = l.weight(i + k);
        if (weight != 0) all = fmaf(weight, -v[k], all);
      }
    });
    all = row_reduce<kThreads>(all, Add());
  }
  if (threadIdx.x % kThreads != 0) return;
  const float weight = label >= 0 ? l.weight(label) : 0.0f;
  const float label_loss = weight > 0 ? weight * -to_float(x[label]) : 0.0f;
  loss[row] = label >= 0 ? joined(l, label_loss, all) : 0.0f;
  row_weight[row] = weight;
}

// resources: likelihood_gradient: registers <= 48, static shared <= 0 bytes
template <class T, int kWidth, int kThreads>
__global__ void __launch_bounds__(kRowBlock) likelihood_gradient(const float* dloss, T* dx, Labels l) {
  const int64_t row = row_index<kThreads>();
  if (row >= l.rows) return;
  const int64_t label = l.of(row);
  const float weight = label >= 0 ? l.weight(label) : 0.0f, scale = -dloss[row];
  for_vectors<kThreads, kWidth>(l.classes, [&](int64_t i) {
    float v[kWidth];
#pragma unroll
    for (int k = 0; k < kWidth; ++k) v[k] = label >= 0 ? scale * l.target(i + k, label, weight) : 0.0f;
    store_floats(dx + row * l.classes + i, v);
  });
}

// resources: accuracy_rows: registers <= 48, static shared <= 64 bytes
template <class T, int kWidth, int kThreads>
__global__ void __launch_bounds__(kRowBlock) accuracy_rows(const T* x, float* correct, float* row_weight, Labels l) {
  const int64_t row = row_index<kThreads>();
  if (row >= l.rows) return;
  Found own{-INFINITY, INT32_MAX};
  for_vectors<kThreads, kWidth>(l.classes, [&](int64_t i) {
    float v[kWidth];
    load_floats(x + row * l.classes + i, v);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) own = FirstLargest()(own, {v[k], static_cast<int32_t>(i + k)});
  });
  const Found best = row_reduce<kThreads>(own, FirstLargest());
  if (threadIdx.x % kThreads != 0) return;
  const bool counts = l.label[row] != l.ignored;
  correct[row] = counts && best.value == best.value && l.label[row] == best.at ? 1.0f : 0.0f;
  row_weight[row] = counts ? 1.0f : 0.0f;
}

/// The sum of x by one block, in a fixed order; 1 a row where x is null.
__device__ double sum_rows(const float* x, int64_t rows) {
  if (x == nullptr) return static_cast<double>(rows);
  double sum = 0;
#pragma unroll 4
  for (int64_t row = threadIdx.x; row < rows; row += kTotalThreads) sum += static_cast<double>(x[row]);
  BRISK_SHARED(double, scratch, [kTotalThreads / kWarpThreads]);
  return block_reduce<kTotalThreads>(sum, Add(), scratch);
}

// resources: total_kernel: registers <= 48, static shared <= 128 bytes
__global__ void __launch_bounds__(kTotalThreads) total_kernel(TotalOptions o) {
  const double terms = sum_rows(o.term, o.rows), weights = sum_rows(o.row_weight, o.rows);
  if (threadIdx.x != 0) return;
  o.totals[0] = o.accumulate ? o.totals[0] + terms : terms;
  o.totals[1] = o.accumulate ? o.totals[1] + weights : weights;
}

// resources: seed_rows_kernel: registers <= 32, static shared <= 0 bytes
__global__ void __launch_bounds__(256) seed_rows_kernel(SeedRowsOptions o) {
  const int64_t row = int64_t{blockIdx.x} * 256 + threadIdx.x;
  if (row < o.rows) o.seeds[row] = o.loss_scale != nullptr ? *o.seed * *o.loss_scale : *o.seed;
}

// resources: seed_count_kernel: registers <= 48, static shared <= 128 bytes
__global__ void __launch_bounds__(kTotalThreads) seed_count_kernel(SeedCountOptions o) {
  const double count = sum_rows(o.row_weight, o.rows);
  if (threadIdx.x == 0) *o.seed = count == 0 ? 0.0f : static_cast<float>(o.factor / count);
}

/// Checks that all class losses share; options without smoothing and weights give 0 and null.
Labels checked_labels(const std::string& launcher, DType dtype, int64_t rows, int64_t classes, const int64_t* labels,
                      int64_t ignored, double smoothing, const float* class_weights, int32_t node, Status* status) {
  check_float(dtype, (launcher + ".dtype").c_str());
  check_option(rows >= 1, (launcher + ".rows").c_str(), rows, "must be 1 or more");
  check_option(classes >= 1 && classes <= INT32_MAX, (launcher + ".classes").c_str(), classes,
               "must be from 1 to 2^31 - 1");
  check_option(smoothing >= 0 && smoothing <= 1, (launcher + ".label_smoothing").c_str(), smoothing,
               "must be from 0 to 1");
  check_pointer(labels, (launcher + ".labels").c_str());
  return {labels,
          class_weights,
          rows,
          classes,
          ignored,
          static_cast<float>(1 - smoothing),
          static_cast<float>(smoothing / static_cast<double>(classes)),
          node,
          status};
}

/// Calls f(T(), width, threads of a row, blocks).
template <class F>
void for_loss(const std::string& launcher, DType dtype, bool vectors, const Labels& l, F f) {
  dispatch_rows(dtype, vectors, l.classes, [&](auto element, auto width, auto threads) {
    f(element, width, threads, row_blocks<decltype(threads)::value>(l.rows, (launcher + ".rows").c_str()));
  });
}

}  // namespace

void softmax_cross_entropy(const SoftmaxCrossEntropyOptions& o, CudaStream stream) {
  const char* const launcher = "kernels::softmax_cross_entropy";
  const Labels l = checked_labels(launcher, o.dtype, o.rows, o.classes, o.labels, o.ignore_index, o.label_smoothing,
                                  o.class_weights, o.node, o.status);
  check_pointer(o.logits, "kernels::softmax_cross_entropy.logits");
  check_pointer(o.loss, "kernels::softmax_cross_entropy.loss");
  check_pointer(o.row_weight, "kernels::softmax_cross_entropy.row_weight");
  const bool vectors = whole_vectors(o.dtype, o.classes, o.logits, o.probabilities);
  for_loss(launcher, o.dtype, vectors, l, [&](auto element, auto width, auto threads, unsigned blocks) {
    using T = decltype(element);
    check_launch(launcher, launch(cross_entropy<T, decltype(width)::value, decltype(threads)::value>, blocks, kRowBlock,
                                  0, stream, static_cast<const T*>(o.logits), static_cast<T*>(o.probabilities), o.loss,
                                  o.row_weight, l));
  });
}

void softmax_cross_entropy_gradient(const SoftmaxCrossEntropyGradientOptions& o, CudaStream stream) {
  const char* const launcher = "kernels::softmax_cross_entropy_gradient";
  const Labels l = checked_labels(launcher, o.dtype, o.rows, o.classes, o.labels, o.ignore_index, o.label_smoothing,
                                  o.class_weights, -1, nullptr);
  check_pointer(o.dloss, "kernels::softmax_cross_entropy_gradient.dloss");
  check_pointer(o.probabilities, "kernels::softmax_cross_entropy_gradient.probabilities");
  check_pointer(o.dlogits, "kernels::softmax_cross_entropy_gradient.dlogits");
  const bool vectors = whole_vectors(o.dtype, o.classes, o.probabilities, o.dlogits);
  for_loss(launcher, o.dtype, vectors, l, [&](auto element, auto width, auto threads, unsigned blocks) {
    using T = decltype(element);
    check_launch(launcher,
                 launch(cross_entropy_gradient<T, decltype(width)::value, decltype(threads)::value>, blocks, kRowBlock,
                        0, stream, o.dloss, static_cast<const T*>(o.probabilities), static_cast<T*>(o.dlogits), l));
  });
}

void negative_log_likelihood(const NegativeLogLikelihoodOptions& o, CudaStream stream) {
  const char* const launcher = "kernels::negative_log_likelihood";
  const Labels l = checked_labels(launcher, o.dtype, o.rows, o.classes, o.labels, o.ignore_index, o.label_smoothing,
                                  o.class_weights, o.node, o.status);
  check_pointer(o.log_probabilities, "kernels::negative_log_likelihood.log_probabilities");
  check_pointer(o.loss, "kernels::negative_log_likelihood.loss");
  check_pointer(o.row_weight, "kernels::negative_log_likelihood.row_weight");
  const bool vectors = whole_vectors(o.dtype, o.classes, o.log_probabilities);
  for_loss(launcher, o.dtype, vectors, l, [&](auto element, auto width, auto threads, unsigned blocks) {
    using T = decltype(element);
    check_launch(launcher, launch(likelihood<T, decltype(width)::value, decltype(threads)::value>, blocks, kRowBlock, 0,
                                  stream, static_cast<const T*>(o.log_probabilities), o.loss, o.row_weight, l));
  });
}

void negative_log_likelihood_gradient(const NegativeLogLikelihoodGradientOptions& o, CudaStream stream) {
  const char* const launcher = "kernels::negative_log_likelihood_gradient";
  const Labels l = checked_labels(launcher, o.dtype, o.rows, o.classes, o.labels, o.ignore_index, o.label_smoothing,
                                  o.class_weights, -1, nullptr);
  check_pointer(o.dloss, "kernels::negative_log_likelihood_gradient.dloss");
  check_pointer(o.dx, "kernels::negative_log_likelihood_gradient.dx");
  for_loss(launcher, o.dtype, whole_vectors(o.dtype, o.classes, o.dx), l,
           [&](auto element, auto width, auto threads, unsigned blocks) {
             using T = decltype(element);
             check_launch(launcher, launch(likelihood_gradient<T, decltype(width)::value, decltype(threads)::value>,
                                           blocks, kRowBlock, 0, stream, o.dloss, static_cast<T*>(o.dx), l));
           });
}

void accuracy(const AccuracyOptions& o, CudaStream stream) {
  const char* const launcher = "kernels::accuracy";
  const Labels l =
      checked_labels(launcher, o.dtype, o.rows, o.classes, o.labels, o.ignore_index, 0, nullptr, -1, nullptr);
  check_pointer(o.logits, "kernels::accuracy.logits");
  check_pointer(o.correct, "kernels::accuracy.correct");
  check_pointer(o.row_weight, "kernels::accuracy.row_weight");
  for_loss(launcher, o.dtype, whole_vectors(o.dtype, o.classes, o.logits), l,
           [&](auto element, auto width, auto threads, unsigned blocks) {
             using T = decltype(element);
             check_launch(launcher,
                          launch(accuracy_rows<T, decltype(width)::value, decltype(threads)::value>, blocks, kRowBlock,
                                 0, stream, static_cast<const T*>(o.logits), o.correct, o.row_weight, l));
           });
}

void total(const TotalOptions& o, CudaStream stream) {
  check_option(o.rows >= 1, "kernels::total.rows", o.rows, "must be 1 or more");
  check_pointer(o.term, "kernels::total.term");
  check_pointer(o.totals, "kernels::total.totals");
  check_launch("kernels::total", launch(total_kernel, 1, kTotalThreads, 0, stream, o));
}

void seed_rows(const SeedRowsOptions& o, CudaStream stream) {
  check_option(o.rows >= 1, "kernels::seed_rows.rows", o.rows, "must be 1 or more");
  check_pointer(o.seed, "kernels::seed_rows.seed");
  check_pointer(o.seeds, "kernels::seed_rows.seeds");
  check_launch("kernels::seed_rows",
               launch(seed_rows_kernel, blocks_for(o.rows, 256, "kernels::seed_rows.rows"), 256, 0, stream, o));
}

void seed_count(const SeedCountOptions& o, CudaStream stream) {
  check_option(o.rows >= 1, "kernels::seed_count.rows", o.rows, "must be 1 or more");
  check_pointer(o.row_weight, "kernels::seed_count.row_weight");
  check_pointer(o.seed, "kernels::seed_count.seed");
  check_launch("kernels::seed_count", launch(seed_count_kernel, 1, kTotalThreads, 0, stream, o));
}

}  // namespace brisk::kernels
