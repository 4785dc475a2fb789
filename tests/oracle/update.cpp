// Reference of the plan's own operations: loading, totals, gradients, and the optimizers as PyTorch defines them.
#include <algorithm>
#include <cmath>

#include "oracle/rules.h"

namespace brisk::oracle {
namespace {

void copy(Frame& f) { f.out().data = f.in(0).data; }

double sum(const Array& array) {
  double total = 0;
  for (const double value : array.data) total += value;
  return total;
}

void total(Frame& f) {
  f.out().data[0] += sum(f.in(0));
  f.out().data[1] += f.count() > 1 ? sum(f.in(1)) : static_cast<double>(f.in(0).data.size());
}

void seed_rows(Frame& f) {
  const double scale = f.count() > 2 ? f.in(2).data[0] : 1;
  f.out().data.assign(f.out().data.size(), f.in(0).data[0] * scale);
}

void seed_count(Frame& f) {
  const double count = sum(f.in(0));
  f.out().data[0] = count == 0 ? 0.0 : f.real("factor") / count;
}

void store_gradient(Frame& f) {
  for (size_t i = 0; i < f.out().data.size(); ++i) {
    f.out().data[i] = f.in(0).data[i] + (f.run.accumulate ? f.out().data[i] : 0.0);
  }
}

/// Norm of the gradient over its finite elements, how many are not finite, what brings it to its limit and takes the
/// loss scale away, and the first gradient that is not finite.
void gradient_stats(Frame& f) {
  const bool scaled = f.flag("scaled");
  const double scale = scaled ? f.in(1).data[0] : 1;
  const int first = scaled ? 2 : 1;
  double squares = 0, nonfinite = 0, bad = -1;
  for (int i = first; i < f.count(); ++i) {
    for (const double g : f.in(i).data) {
      if (std::isfinite(g)) {
        squares += g * g;
        continue;
      }
      nonfinite += 1;
      if (bad < 0) bad = i - first;
      if (!scaled && f.fault.kind == Fault::none) f.fault = {Fault::nonfinite_gradient, f.index, i - 1, 0};
    }
  }
  const double norm = std::fabs(f.in(0).data[0]) / scale * std::sqrt(squares), limit = f.real("clip_norm");
  f.out().data = {norm, nonfinite, (limit > 0 && norm > limit ? limit / (norm + 1e-6) : 1.0) / scale, bad};
}

/// PyTorch's GradScaler: a factor after so many good updates in a row, another one after each bad one; within limits.
/// The counters are updates, good ones since the scale changed, skips in a row, and all skips.
void scale_update(Frame& f) {
  const bool scaled = f.flag("scaled");
  double scale = f.in(1).data[0];
  std::vector<double> counters = f.in(2).data;
  if (f.fault.kind == Fault::none && f.in(0).data[1] != 0) {
    counters[1] = 0;
    counters[2] += 1;
    counters[3] += 1;
    if (scaled) scale = std::max(scale * f.real("backoff"), f.real("minimum"));
  } else if (f.fault.kind == Fault::none) {
    counters[0] += 1;
    counters[1] += 1;
    counters[2] = 0;
    if (counters[1] == static_cast<double>(f.integer("interval"))) {
      counters[1] = 0;
      if (scaled) scale = std::min(scale * f.real("growth"), f.real("maximum"));
    }
  }
  f.out(0).data = {scale};
  f.out(1).data = counters;
}

/// Outputs that an update which does not count leaves alone keep what they are given.
void commit_staged(Frame& f) {
  if (f.fault.kind != Fault::none || f.in(0).data[1] != 0) return;
  for (int i = 1; i < f.count(); ++i) f.out(i - 1).data = f.in(i).data;
}

/// The operands of parameter k of a walk: `moments` memories follow each parameter and its gradient.
struct Walk {
  Frame& f;
  int scalars, moments;
  int parameters() const { return (f.count() - scalars) / (2 + moments); }
  const std::vector<double>& in(int k, int which) const { return f.in(scalars + k * (2 + moments) + which).data; }
  std::vector<double>& out(int k, int which) const { return f.out(which * parameters() + k).data; }
  /// Copies what a skipped update leaves as it was; true when it is skipped.
  bool skipped(int stats) const {
    if (f.fault.kind == Fault::none && f.in(stats).data[1] == 0) return false;
    for (int k = 0; k < parameters(); ++k) {
      out(k, 0) = in(k, 0);
      for (int m = 0; m < moments; ++m) out(k, 1 + m) = in(k, 2 + m);
    }
    return true;
  }
};

void sgd_walk(Frame& f) {
  const double momentum = f.real("momentum"), ratio = f.in(1).data[0] * f.in(3).data[2];
  const bool first = f.in(2).data[0] != 0;
  const Walk walk{f, 4, momentum != 0 ? 1 : 0};
  if (walk.skipped(3)) return;
  for (int k = 0; k < walk.parameters(); ++k) {
    const double rate = f.in(0).data[0] * f.reals("rate_scale")[static_cast<size_t>(k)];
    for (size_t i = 0; i < walk.in(k, 0).size(); ++i) {
      const double w = walk.in(k, 0)[i];
      double g = ratio * walk.in(k, 1)[i] + f.reals("weight_decay")[static_cast<size_t>(k)] * w;
      if (momentum != 0) {
        const double buffer = first ? g : momentum * walk.in(k, 2)[i] + (1 - f.real("dampening")) * g;
        walk.out(k, 1)[i] = buffer;
        g = f.flag("nesterov") ? g + momentum * buffer : buffer;
      }
      walk.out(k, 0)[i] = w - rate * g;
    }
  }
}

void adam_walk(Frame& f) {
  const double ratio = f.in(1).data[0] * f.in(4).data[2], bias1 = f.in(2).data[0], bias2 = f.in(3).data[0];
  const double beta1 = f.real("beta1"), beta2 = f.real("beta2");
  const Walk walk{f, 5, 2};
  if (walk.skipped(4)) return;
  for (int k = 0; k < walk.parameters(); ++k) {
    const double rate = f.in(0).data[0] * f.reals("rate_scale")[static_cast<size_t>(k)];
    const double decay = f.reals("weight_decay")[static_cast<size_t>(k)];
    for (size_t i = 0; i < walk.in(k, 0).size(); ++i) {
      double w = walk.in(k, 0)[i], g = ratio * walk.in(k, 1)[i];
      if (f.flag("decoupled")) {
        w *= 1 - rate * decay;
      } else {
        g += decay * w;
      }
      const double m = beta1 * walk.in(k, 2)[i] + (1 - beta1) * g;
      const double v = beta2 * walk.in(k, 3)[i] + (1 - beta2) * g * g;
      walk.out(k, 0)[i] = w - rate / bias1 * m / (std::sqrt(v) / std::sqrt(bias2) + f.real("epsilon"));
      walk.out(k, 1)[i] = m;
      walk.out(k, 2)[i] = v;
    }
  }
}

void batch_norm_commit(Frame& f) {
  const double momentum = f.real("momentum");
  const int at = f.count() == 6 && (f.flag("chained") || f.run.accumulate) ? 4 : 2;
  for (int i = 0; i < 2; ++i) {
    for (size_t c = 0; c < f.out(i).data.size(); ++c) {
      const double before = f.in(at + i).data[c];
      f.out(i).data[c] = f.fault.kind == Fault::none ? (1 - momentum) * before + momentum * f.in(i).data[c] : before;
    }
  }
}

}  // namespace

const std::vector<Rule>& plan_rules() {
  static const std::vector<Rule> rules = {
      {"load", copy},
      {"store", copy},
      {"total", total},
      {"seed_rows", seed_rows},
      {"seed_count", seed_count},
      {"store_gradient", store_gradient},
      {"gradient_stats", gradient_stats},
      {"sgd_walk", sgd_walk},
      {"adam_walk", adam_walk},
      {"batch_norm_commit", batch_norm_commit},
      {"commit_staged", commit_staged},
      {"scale_update", scale_update},
  };
  return rules;
}

}  // namespace brisk::oracle
