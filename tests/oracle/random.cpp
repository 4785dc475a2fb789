// Reference of random values and of stochastic depth.
#include <cmath>

#include "oracle/rules.h"

namespace brisk::oracle {
namespace {

/// Word e % 4 of block e / 4 of sample n's counter.
uint32_t word_of(const Frame& f, int64_t n, int64_t e) {
  return random_word(static_cast<uint64_t>(f.integer("stream")), static_cast<uint64_t>(f.run.attempt),
                     static_cast<uint32_t>(f.run.first_sample + n), static_cast<uint32_t>(e / 4),
                     static_cast<int>(e % 4));
}

template <class F>
void for_each_element(Frame& f, F body) {
  const int64_t elements = f.out_type().elements();
  for (int64_t n = 0; n < f.samples; ++n)
    for (int64_t e = 0; e < elements; ++e) f.out().data[static_cast<size_t>(n * elements + e)] = body(n, e);
}

/// Box and Muller, 1958: words 0 and 1 of a block give elements 0 (cosine) and 1 (sine), words 2 and 3 the others.
void random_normal(Frame& f) {
  for_each_element(f, [&](int64_t n, int64_t e) {
    const double radius = std::sqrt(-2 * std::log((word_of(f, n, e / 2 * 2) + 0.5) / 4294967296.0));
    const double angle = 2 * std::acos(-1.0) * (word_of(f, n, e / 2 * 2 + 1) / 4294967296.0);
    return f.real("mean") + f.real("deviation") * radius * (e % 2 == 0 ? std::cos(angle) : std::sin(angle));
  });
}

void random_uniform(Frame& f) {
  const double low = f.real("low"), high = f.real("high");
  const auto most = static_cast<double>(std::nextafter(static_cast<float>(high), static_cast<float>(low)));
  for_each_element(f, [&](int64_t n, int64_t e) {
    return std::fmin(low + (high - low) * ((word_of(f, n, e) >> 8) / 16777216.0), most);
  });
}

/// One word for each row of a sample.
void stochastic_depth(Frame& f) {
  const int64_t rows = f.in_type(0).rows, elements = f.in_type(0).shape.count();
  for_each_element(f, [&](int64_t n, int64_t e) {
    const bool stays = word_of(f, n, e / elements) / 4294967296.0 >= f.real("rate");
    return stays ? f.in(0).data[static_cast<size_t>(n * rows * elements + e)] / (1 - f.real("rate")) : 0.0;
  });
}

}  // namespace

const std::vector<Rule>& random_rules() {
  static const std::vector<Rule> rules = {
      {"random_normal", random_normal},
      {"random_uniform", random_uniform},
      {"stochastic_depth", stochastic_depth},
  };
  return rules;
}

}  // namespace brisk::oracle
