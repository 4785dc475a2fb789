// Checks of options and axes.
#include "graph/ops/front.h"

#include <cmath>

namespace brisk::graph {
namespace {

std::string allowed_text(int64_t low, std::string_view meaning) {
  return cat("must be at least ", low, " and below 2^31", meaning.empty() ? "" : "; ", meaning);
}

bool in_range(int64_t value, int64_t low) { return value >= low && value <= INT32_MAX; }

}  // namespace

void check_integer(std::string_view field, int64_t value, int64_t low, std::string_view meaning, Where where) {
  if (!in_range(value, low)) check_option(false, field, value, allowed_text(low, meaning), where);
}

void check_size(std::string_view field, Size2 value, int64_t low, std::string_view meaning, Where where) {
  if (in_range(value.height, low) && in_range(value.width, low)) return;
  const std::string text =
      value.height == value.width ? cat(value.height) : cat("{", value.height, ", ", value.width, "}");
  check_option(false, field, text, allowed_text(low, meaning), where);
}

void check_number(std::string_view field, double value, Where where) {
  check_option(std::isfinite(static_cast<float>(value)), field, value, "must be a finite number as an f32", where);
}

void check_input(const Var& x, std::string_view op, const std::string& name, Where where,
                 void (*check)(const InferContext&)) {
  const auto tracer = Access::tracer(x);
  OpInfo info;
  info.name = op;
  Node node;
  node.op = &info;
  node.inputs = {Access::value(x)};
  node.name = name;
  node.where = where;
  check(InferContext(tracer->graph, node));
}

int64_t sample_axis(const Var& x, std::string_view field, int64_t axis, Where where) {
  const ValueType& type = Access::type(x);
  const int64_t rank = type.rank(), first = type.batched() ? 1 : 0;
  const int64_t from_front = axis < 0 ? axis + rank : axis;
  if (from_front < 0 || from_front >= rank || from_front < first) {
    const bool samples = from_front == 0 && type.batched();
    const std::string range = rank == first ? cat(type, " has no other dimension")
                                            : cat("allowed for ", type, " is ", first, " to ", rank - 1);
    throw Error(ErrorCode::shape, cat(field, " = ", axis),
                cat(samples ? "is the dimension of the samples, which stay apart; " : "is no dimension; ", range),
                where);
  }
  return from_front - first;
}

}  // namespace brisk::graph
