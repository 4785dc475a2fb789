// Rows of users' operations: what reaches their code and what becomes of it.
#include "cases/table.h"
#include "support/own_ops.h"

namespace brisk::test {
namespace {

Attributes swish() { return {{"op", graph::Object(std::make_shared<LearntSwish>())}}; }

Attributes swish_gradient(Shape sample, int64_t for_x, int64_t for_b) {
  Attributes attributes = swish();
  std::vector<int64_t> types = {0, 1, sample.rank()};
  types.insert(types.end(), sample.begin(), sample.end());
  types.insert(types.end(), {0, 0, 1, sample[0]});
  attributes.set("inputs", types);
  attributes.set("wanted", std::vector<int64_t>{for_x, for_b});
  return attributes;
}

}  // namespace

std::vector<OpCase> custom_cases() {
  std::vector<OpCase> rows = {
      {"custom_op_tails", "custom_op", swish(), {in(b({2, 1, 3})), in(p({2}))}, all_tails(), kFunction},
      {"custom_op_large",
       "custom_op",
       swish(),
       {in(b({3, 37, 41}), uniform(-4, 4)), in(p({3}))},
       few_tails(),
       kFunction},
      {"custom_op_rows", "custom_op", swish(), {in(b({3, 2, 2}, 3)), in(p({3}))}, some_tails(), kFunction},
      {"custom_op_plain", "custom_op", swish(), {in(p({2, 3, 4, 5})), in(p({3}))}, {1, 5}, kFunction},
  };
  const auto gradient = [&](const char* name, Shape x, int64_t n, int64_t for_x, int64_t for_b,
                            std::vector<int64_t> batches) {
    rows.push_back({name,
                    "custom_op_gradient",
                    swish_gradient(x, for_x, for_b),
                    {in(b(x, n)), in(b(x, n)), in(p({x[0]}))},
                    std::move(batches),
                    kSum});
  };
  gradient("custom_op_gradient_tails", {2, 1, 3}, 1, 1, 1, all_tails());
  gradient("custom_op_gradient_rows", {3, 2, 2}, 3, 1, 1, some_tails());
  gradient("custom_op_gradient_of_x", {3, 7, 2}, 1, 1, 0, few_tails());
  gradient("custom_op_gradient_of_b", {3, 7, 2}, 1, 0, 1, few_tails());
  return rows;
}

}  // namespace brisk::test
