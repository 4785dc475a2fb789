// Puts the table together and turns its rows into nodes.
#include "cases/op_cases.h"

#include <cstdlib>
#include <string_view>

#include "cases/table.h"
#include "graph/low_forms.h"
#include "oracle/low_floats.h"

namespace brisk::test {

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> rows = [] {
    std::vector<OpCase> all = elementwise_cases();
    append(all, custom_cases());
    append(all, indexing_cases());
    append(all, layer_cases());
    append(all, layer_norm_cases());
    append(all, loss_cases());
    append(all, norm_cases());
    append(all, plan_cases());
    append(all, pool_cases());
    append(all, random_cases());
    append(all, shape_cases());
    return all;
  }();
  return rows;
}

NodeCase make_case(const OpCase& row, int64_t samples) {
  NodeCase made{row.op, row.attributes, {}, samples, row.run, false, row.before};
  uint64_t seed = 14695981039346656037u;
  for (const char c : row.name) seed = (seed ^ static_cast<uint8_t>(c)) * 1099511628211u;
  Random random(seed + static_cast<uint64_t>(samples));
  for (const CaseInput& input : row.inputs) {
    const int64_t count = input.type.elements() * (input.type.batched() ? samples : 1);
    std::vector<double> data = input.fill(row, count, random);
    if (input.type.dtype == DType::f32) {
      for (double& value : data) value = static_cast<double>(static_cast<float>(value));
    } else if (graph::is_low(input.type.dtype)) {
      for (double& value : data) value = oracle::rounded_to(input.type.dtype, value);
    }
    made.inputs.push_back({input.type, std::move(data), input.place, input.slot});
  }
  return made;
}

std::vector<int64_t> batches_of(const OpCase& row) {
  const char* selection = std::getenv("BRISK_CASES");
  if (!selection || std::string_view(selection) != "small" || row.batches.size() < 4) return row.batches;
  return {row.batches.front(), row.batches[row.batches.size() / 2], row.batches.back()};
}

}  // namespace brisk::test
