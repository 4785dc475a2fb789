// Sums with their counts.
#include "train/totals.h"

#include <cmath>

#include "core/text.h"

namespace brisk::train {
namespace {

void add_means(std::vector<NamedMean>& whole, const std::vector<NamedMean>& part) {
  if (whole.empty()) {
    whole = part;
    return;
  }
  for (size_t i = 0; i < part.size() && i < whole.size(); ++i) {
    whole[i].sum += part[i].sum;
    whole[i].count += part[i].count;
  }
}

std::string four_digits(double value) { return number_text(value, 4); }

}  // namespace

void add_totals(StepTotals& whole, const StepTotals& part, const Factors& factors) {
  const bool first = whole.terms.empty() && whole.samples == 0;
  add_means(whole.metrics, part.metrics);
  add_means(whole.terms, part.terms);
  whole.samples += part.samples;
  whole.clock = part.clock;
  whole.gradient_norm = part.gradient_norm;
  whole.learning_rate = part.learning_rate;
  whole.loss_scale = part.loss_scale;
  whole.skipped = part.skipped;
  if (first || factors.size() != whole.terms.size()) {
    whole.loss = part.loss;
    return;
  }
  whole.loss = 0;
  for (size_t i = 0; i < factors.size(); ++i) whole.loss += factors[i] * whole.terms[i].value();
}

EvaluationResult evaluation_of(const StepTotals& totals) {
  EvaluationResult out;
  out.loss = totals.loss;
  out.metrics = totals.metrics;
  out.samples = totals.samples;
  out.terms = totals.terms;
  return out;
}

std::string values_text(double loss, const std::vector<NamedMean>& terms, const std::vector<NamedMean>& metrics) {
  std::string out = cat("loss ", four_digits(loss));
  if (terms.size() > 1) {
    for (const NamedMean& term : terms) out += cat(", loss.", term.name, " ", four_digits(term.value()));
  }
  for (const NamedMean& metric : metrics) out += cat(", ", metric.name, " ", four_digits(metric.value()));
  return out;
}

std::string epochs_text(double epochs) {
  return cat(fixed_text(epochs, std::floor(epochs) == epochs ? 0 : 2), epochs == 1 ? " epoch" : " epochs");
}

}  // namespace brisk::train
