// Rows of the classification losses and of accuracy.
#include <limits>

#include "cases/table.h"

namespace brisk::test {
namespace {

struct Loss {
  std::string name;
  int64_t classes;
  std::vector<int64_t> batches;
  double smoothing = 0;
  bool weighted = false;
  int64_t rows = 1;

  Attributes attributes() const {
    std::vector<double> weights;
    for (int64_t c = 0; weighted && c < classes; ++c) weights.push_back(0.25 * static_cast<double>(c % 5));
    return {{"class_weights", weights}, {"ignore_index", int64_t{-100}}, {"label_smoothing", smoothing}};
  }
};

std::vector<Loss> losses() {
  return {
      {"tails", 3, all_tails()},
      {"ten", 10, some_tails()},
      {"one_class", 1, few_tails()},
      {"smoothed", 5, some_tails(), 0.1},
      {"weighted", 7, some_tails(), 0, true},
      {"smoothed_weighted", 7, some_tails(), 0.2, true},
      {"two_rows", 4, some_tails(), 0.1, true, 2},
      {"many", 1000, {1, 17}, 0.1},
      {"all_smooth", 4, few_tails(), 1},
  };
}

}  // namespace

std::vector<OpCase> loss_cases() {
  constexpr Tolerance kLoss = {1e-6, Measure::output, 1e-6};
  std::vector<OpCase> rows;
  for (const Loss& l : losses()) {
    const ValueType k = b({l.classes}, l.rows), row = b({}, l.rows);
    const Attributes attributes = l.attributes();
    Attributes with_classes = attributes;
    with_classes.set("classes", l.classes);
    const CaseInput label = label_input(l.classes, l.rows);
    rows.push_back({"negative_log_likelihood_" + l.name,
                    "negative_log_likelihood",
                    attributes,
                    {in(k, uniform(-5, 0)), label},
                    l.batches,
                    kLoss});
    rows.push_back({"negative_log_likelihood_gradient_" + l.name,
                    "negative_log_likelihood_gradient",
                    with_classes,
                    {in(row), label},
                    l.batches,
                    {3e-7}});
    rows.push_back({"softmax_cross_entropy_" + l.name,
                    "softmax_cross_entropy",
                    attributes,
                    {in(k, uniform(-3, 3)), label},
                    l.batches,
                    kLoss});
    rows.push_back({"softmax_cross_entropy_gradient_" + l.name,
                    "softmax_cross_entropy_gradient",
                    attributes,
                    {in(row), label, in(k, uniform(0, 1))},
                    l.batches,
                    {1e-6, Measure::output}});
    rows.push_back({"accuracy_" + l.name,
                    "accuracy",
                    {{"ignore_index", int64_t{-100}}},
                    {in(k, quarters()), label},
                    l.batches,
                    kExact});
  }
  const Attributes attributes = losses()[0].attributes();
  rows.push_back(
      {"softmax_cross_entropy_large",
       "softmax_cross_entropy",
       attributes,
       {in(b({3}), values({1000, 0, -1000, 5, 5, 5, -431, 279, 427, 3e38, -3e38, 0, 1e-30, 0, 90})), label_input(3)},
       all_tails(),
       {1e-6, Measure::element, 1e-6},
       false});
  Attributes other = attributes;
  other.set("ignore_index", int64_t{1});
  rows.push_back({"softmax_cross_entropy_ignores_a_class",
                  "softmax_cross_entropy",
                  other,
                  {in(b({3})), in(b({}, 1, DType::i64), labels(3, 1))},
                  some_tails(),
                  kLoss});
  const CaseInput bad = in(b({}, 1, DType::i64), values({2, 0, -100, 1, 2, 2, 3, 0, -1, 4294967297.0, 1, 0, 99}));
  rows.push_back(
      {"softmax_cross_entropy_bad_labels", "softmax_cross_entropy", attributes, {in(b({3})), bad}, all_tails(), kLoss});
  rows.push_back({"negative_log_likelihood_bad_labels",
                  "negative_log_likelihood",
                  attributes,
                  {in(b({3})), bad},
                  all_tails(),
                  kLoss});
  rows.push_back({"softmax_cross_entropy_bad_labels_large",
                  "softmax_cross_entropy",
                  attributes,
                  {in(b({3})), bad},
                  {1000, 4099},
                  kLoss});
  rows.push_back(
      {"accuracy_bad_labels", "accuracy", {{"ignore_index", int64_t{-100}}}, {in(b({3})), bad}, all_tails(), kExact});
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
  rows.push_back({"accuracy_special",
                  "accuracy",
                  {{"ignore_index", int64_t{-100}}},
                  {in(b({3}), values({kNaN, 1, 2, 0, kNaN, 0, 1, 2, kNaN, kInf, -kInf, kInf, -kInf, -kInf, -kInf})),
                   in(b({}, 1, DType::i64), values({0, 1, 2, 0, 0, 2, 1}))},
                  all_tails(),
                  kExact,
                  false});
  return rows;
}

}  // namespace brisk::test
