// Reference of batch normalization (Ioffe and Szegedy, 2015) and of softmax.
#include <cmath>
#include <limits>

#include "oracle/rules.h"

namespace brisk::oracle {
namespace {

/// Elements of a batched value by channel: channel c of row r holds `inner` elements.
struct Channels {
  int64_t rows, channels, inner;
  int64_t per_channel() const { return rows * inner; }
  size_t at(int64_t row, int64_t channel, int64_t i) const {
    return static_cast<size_t>((row * channels + channel) * inner + i);
  }
};

Channels channels(const Frame& f) {
  const Around a = around(f.in_type(0).shape, 0);
  return {f.rows(f.in_type(0)), a.size, a.inner};
}

/// Calls body(element index, channel) for all elements.
template <class F>
void for_each(const Channels& c, F body) {
  for (int64_t row = 0; row < c.rows; ++row)
    for (int64_t channel = 0; channel < c.channels; ++channel)
      for (int64_t i = 0; i < c.inner; ++i) body(c.at(row, channel, i), static_cast<size_t>(channel));
}

void batch_norm(Frame& f) {
  const Channels c = channels(f);
  const auto count = static_cast<double>(c.per_channel());
  std::vector<double>&mean = f.out(1).data, &inv_std = f.out(2).data, &unbiased = f.out(3).data;
  std::vector<double> variance(static_cast<size_t>(c.channels));
  for_each(c, [&](size_t i, size_t channel) { mean[channel] += f.in(0).data[i] / count; });
  for_each(c, [&](size_t i, size_t channel) {
    const double d = f.in(0).data[i] - mean[channel];
    variance[channel] += d * d / count;
  });
  for (size_t k = 0; k < variance.size(); ++k) {
    inv_std[k] = 1 / std::sqrt(variance[k] + f.real("epsilon"));
    unbiased[k] = count > 1 ? variance[k] * count / (count - 1) : variance[k];
  }
  for_each(c, [&](size_t i, size_t channel) {
    double y = (f.in(0).data[i] - mean[channel]) * inv_std[channel] * f.in(1).data[channel] + f.in(2).data[channel];
    if (f.count() > 5) y += f.in(5).data[i];
    f.out().data[i] = activate(f.text("activation"), y);
  });
}

void batch_norm_inference(Frame& f) {
  for_each(channels(f), [&](size_t i, size_t channel) {
    const double deviation = std::sqrt(f.in(4).data[channel] + f.real("epsilon"));
    double y = (f.in(0).data[i] - f.in(3).data[channel]) / deviation * f.in(1).data[channel] + f.in(2).data[channel];
    if (f.count() > 5) y += f.in(5).data[i];
    f.out().data[i] = activate(f.text("activation"), y);
  });
}

void batch_norm_gradient(Frame& f) {
  const Channels c = channels(f);
  const auto count = static_cast<double>(c.per_channel());
  std::vector<double>&dgamma = f.out(1).data, &dbeta = f.out(2).data;
  const auto normalized = [&](size_t i, size_t channel) {
    return (f.in(1).data[i] - f.in(3).data[channel]) * f.in(4).data[channel];
  };
  const std::string& activation = f.text("activation");
  const auto dz = [&](size_t i, size_t channel) {
    const double dy = f.in(0).data[i];
    if (activation == "none") return dy;
    const double z = normalized(i, channel) * f.in(2).data[channel] + f.in(5).data[channel];
    if (activation == "relu") return z > 0 ? dy : 0;
    const double s = activate("sigmoid", z);
    return dy * s * (1 + z * (1 - s));
  };
  for_each(c, [&](size_t i, size_t channel) {
    dgamma[channel] += dz(i, channel) * normalized(i, channel);
    dbeta[channel] += dz(i, channel);
  });
  for_each(c, [&](size_t i, size_t channel) {
    const double centred = dz(i, channel) - dbeta[channel] / count - normalized(i, channel) * dgamma[channel] / count;
    f.out().data[i] = f.in(2).data[channel] * f.in(4).data[channel] * centred;
  });
}

/// Calls body(index of element k: at(k), size) for every line along the attribute `axis`.
template <class F>
void for_each_line(Frame& f, F body) {
  const Around a = around(f.in_type(0).shape, f.integer("axis"));
  for (int64_t o = 0; o < f.rows(f.in_type(0)) * a.outer; ++o)
    for (int64_t i = 0; i < a.inner; ++i) {
      body([=](int64_t k) { return static_cast<size_t>((o * a.size + k) * a.inner + i); }, a.size);
    }
}

double line_maximum(const Array& x, const auto& at, int64_t size) {
  double maximum = -std::numeric_limits<double>::infinity();
  for (int64_t k = 0; k < size; ++k) {
    if (std::isnan(x.data[at(k)])) return x.data[at(k)];
    maximum = std::fmax(maximum, x.data[at(k)]);
  }
  return maximum;
}

void softmax(Frame& f) {
  for_each_line(f, [&](const auto& at, int64_t size) {
    const double maximum = line_maximum(f.in(0), at, size);
    double sum = 0;
    for (int64_t k = 0; k < size; ++k) sum += std::exp(f.in(0).data[at(k)] - maximum);
    for (int64_t k = 0; k < size; ++k) f.out().data[at(k)] = std::exp(f.in(0).data[at(k)] - maximum) / sum;
  });
}

void log_softmax(Frame& f) {
  for_each_line(f, [&](const auto& at, int64_t size) {
    const double maximum = line_maximum(f.in(0), at, size);
    double sum = 0;
    for (int64_t k = 0; k < size; ++k) sum += std::exp(f.in(0).data[at(k)] - maximum);
    for (int64_t k = 0; k < size; ++k) f.out().data[at(k)] = f.in(0).data[at(k)] - maximum - std::log(sum);
  });
}

void softmax_gradient(Frame& f) {
  for_each_line(f, [&](const auto& at, int64_t size) {
    double dot = 0;
    for (int64_t k = 0; k < size; ++k) dot += f.in(0).data[at(k)] * f.in(1).data[at(k)];
    for (int64_t k = 0; k < size; ++k) f.out().data[at(k)] = f.in(1).data[at(k)] * (f.in(0).data[at(k)] - dot);
  });
}

void log_softmax_gradient(Frame& f) {
  for_each_line(f, [&](const auto& at, int64_t size) {
    double sum = 0;
    for (int64_t k = 0; k < size; ++k) sum += f.in(0).data[at(k)];
    for (int64_t k = 0; k < size; ++k) {
      f.out().data[at(k)] = f.in(0).data[at(k)] - std::exp(f.in(1).data[at(k)]) * sum;
    }
  });
}

}  // namespace

const std::vector<Rule>& norm_rules() {
  static const std::vector<Rule> rules = {
      {"batch_norm", batch_norm},
      {"batch_norm_inference", batch_norm_inference},
      {"batch_norm_gradient", batch_norm_gradient},
      {"softmax", softmax},
      {"softmax_gradient", softmax_gradient},
      {"log_softmax", log_softmax},
      {"log_softmax_gradient", log_softmax_gradient},
  };
  return rules;
}

}  // namespace brisk::oracle
