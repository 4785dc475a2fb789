// Broadcasting, and the entries of elementwise operations.
#include "graph/ops/elementwise_rules.h"

#include <algorithm>

namespace brisk::graph {
namespace {

/// The shape that `a` and `b` broadcast to, in `a`; false when they do not fit.
bool broadcast(Shape& a, const Shape& b, std::pair<int64_t, int64_t>& misfit) {
  Shape out;
  const int rank = std::max(a.rank(), b.rank());
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    const int64_t sa = ia < 0 ? 1 : a[ia], sb = ib < 0 ? 1 : b[ib];
    misfit = {sa, sb};
    if (sa != sb && sa != 1 && sb != 1) return false;
    out.append(std::max(sa, sb));
  }
  a = out;
  return true;
}

ValueId reshaped(Derivation& d, ValueId id, const Shape& shape) {
  const int64_t rows = d.type(id).rows;
  return d.emit("reshape", {id}, {{"rows", rows}, {"shape", list(shape)}});
}

}  // namespace

Types infer_broadcast(const InferContext& c) {
  ValueType out = want_f32(c, 0);
  for (int i = 1; i < c.count(); ++i) {
    const ValueType& x = want_f32(c, i);
    std::pair<int64_t, int64_t> sizes;
    if (!broadcast(out.shape, x.shape, sizes)) {
      std::string all = c.describe(0);
      for (int k = 1; k < c.count(); ++k) all += cat(k + 1 == c.count() ? " and " : ", ", c.describe(k));
      c.fail(cat("sizes ", sizes.first, " and ", sizes.second, " do not fit together: ", all));
    }
    out.rows = std::max(out.rows, x.rows);
  }
  return {out};
}

Types infer_broadcast_to(const InferContext& c, int i, const char* role) {
  const Types out = infer_broadcast(c);
  want_type(c, i, role, out[0]);
  return out;
}

Types infer_unary(const InferContext& c) { return {want_f32(c, 0)}; }

Types infer_gradient(const InferContext& c) {
  const ValueType& dy = want_f32(c, 0, "gradient");
  want_type(c, 1, "value", dy);
  return {dy};
}

ValueId reduced(Derivation& d, ValueId gradient, ValueId operand) {
  const Shape from = d.type(gradient).shape, to = d.type(operand).shape;
  const int missing = from.rank() - to.rank();
  std::vector<int64_t> axes;
  for (int i = 0; i < from.rank(); ++i) {
    if (i < missing || to[i - missing] != from[i]) axes.push_back(i);
  }
  if (!axes.empty()) {
    const bool keep = static_cast<int>(axes.size()) != missing;
    gradient = d.emit("reduce_sum", {gradient}, {{"axes", axes}, {"keep", keep}});
    if (keep && missing > 0) gradient = reshaped(d, gradient, to);
  }
  const bool collect = d.type(gradient).batched() && !d.type(operand).batched();
  return collect ? d.emit("batch_sum", {gradient}) : gradient;
}

ValueId scaled(Derivation& d, ValueId id, double factor) { return d.emit("scale", {id}, {{"factor", factor}}); }

OpInfo binary(std::string_view name, Derive derive, Reads reads) {
  return {.name = name,
          .minimum_inputs = 2,
          .maximum_inputs = 2,
          .infer = infer_broadcast,
          .derive = derive,
          .backward_reads = reads,
          .elementwise = true};
}

OpInfo function(std::string_view name, Derive derive, Reads reads, std::vector<AttributeInfo> attributes, Infer infer) {
  return {.name = name,
          .attributes = std::move(attributes),
          .infer = infer,
          .derive = derive,
          .backward_reads = reads,
          .elementwise = true};
}

OpInfo gradient(std::string_view name, std::vector<AttributeInfo> attributes, Infer infer) {
  return {.name = name,
          .minimum_inputs = 2,
          .maximum_inputs = 2,
          .attributes = std::move(attributes),
          .infer = infer,
          .elementwise = true};
}

}  // namespace brisk::graph
