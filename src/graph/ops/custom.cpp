// Operations of the user's own: an entry that asks the object, and its derivative. The derivative's node carries the
// types of the inputs in its attributes, since it need not read them.
#include "brisk/op.h"

#include <algorithm>

#include "graph/ops/front.h"

namespace brisk::graph {
namespace {

void check_rank(const InferContext& c, const ValueType& type, const std::string& what) {
  if (type.rank() > Shape::kMaximumRank)
    c.fail(cat(what, " has ", type.rank(), " dimensions, at most ", Shape::kMaximumRank, " are allowed"));
}

Types infer_custom(const InferContext& c) {
  std::vector<TensorType> in;
  int64_t rows = 0;
  for (int i = 0; i < c.count(); ++i) {
    const ValueType& type = c.input(i);
    check_rank(c, type, cat("input ", i));
    in.push_back({type.shape, type.dtype, type.batched()});
    rows = std::max(rows, type.rows);
  }
  TensorType out;
  try {
    out = c.attributes().object("op").infer({in.data(), in.size()});
  } catch (const std::exception& error) {
    c.fail(cat("infer() refuses its inputs: ", error.what()));
  }
  if (out.batched != (rows > 0))
    c.fail(cat("infer() returned ", out, ", which must ", rows > 0 ? "be batched, since an input is" : "not be batched",
               ": begin with a copy of an input's type"));
  if (out.dtype == DType::f16 || out.dtype == DType::bf16)
    c.fail(cat("infer() returned ", name(out.dtype), "; allowed are f32 and integers"));
  const ValueType type = {out.dtype, rows, out.shape};
  check_rank(c, type, "the output");
  return {type};
}

// Types as numbers: element type, whether it is batched, rank, sizes.
std::vector<int64_t> encode(const Types& types) {
  std::vector<int64_t> numbers;
  for (const ValueType& type : types) {
    numbers.insert(numbers.end(), {static_cast<int64_t>(type.dtype), type.batched() ? 1 : 0, type.shape.rank()});
    numbers.insert(numbers.end(), type.shape.begin(), type.shape.end());
  }
  return numbers;
}

Types infer_gradient(const InferContext& c) {
  const Types inputs = custom_input_types(c.attributes(), c.input(0).rows);
  const std::vector<int64_t>& wanted = c.attributes().integers("wanted");
  want_f32(c, 0, "gradient");
  c.require(wanted.size() == inputs.size(), "'wanted' has not one number an input");
  Types types;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (wanted[i] != 0) types.push_back(inputs[i]);
  return types;
}

void derive_custom(Derivation& d) {
  const Reads reads = backward_reads(d.node());
  Types types;
  std::vector<int64_t> wanted;
  std::vector<ValueId> inputs = {d.output_gradient()};
  for (int i = 0; i < d.count(); ++i) {
    types.push_back(d.type(d.input(i)));
    wanted.push_back(d.wants(i) ? 1 : 0);
    if (reads == Reads::inputs || reads == Reads::both) inputs.push_back(d.input(i));
  }
  if (reads == Reads::outputs || reads == Reads::both) inputs.push_back(d.output());
  const int32_t index =
      d.emit_node("custom_op_gradient", inputs,
                  {{"inputs", encode(types)}, {"op", *d.attributes().find("op")}, {"wanted", wanted}});
  const std::vector<ValueId> gradients = d.graph().nodes[static_cast<size_t>(index)].outputs;
  size_t next = 0;
  for (int i = 0; i < d.count(); ++i)
    if (d.wants(i)) d.set(i, gradients[next++]);
}

bool valid_name(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

}  // namespace

std::vector<ValueType> custom_input_types(const Attributes& gradient, int64_t rows) {
  const std::vector<int64_t>& numbers = gradient.integers("inputs");
  Types types;
  for (auto at = numbers.begin(); at != numbers.end();) {
    ValueType type;
    type.dtype = static_cast<DType>(*at++);
    type.rows = *at++ != 0 ? rows : 0;
    for (int64_t rank = *at++; rank > 0; --rank) type.shape.append(*at++);
    types.push_back(type);
  }
  return types;
}

std::span<const OpInfo> custom_ops() {
  static const std::vector<OpInfo> ops = {
      {.name = "custom_op",
       .maximum_inputs = -1,
       .attributes = {{"op", Kind::object}},
       .infer = infer_custom,
       .derive = derive_custom,
       .backward_reads = Reads::both},
      {.name = "custom_op_gradient",
       .maximum_inputs = -1,
       .outputs = -1,
       .attributes = {{"inputs", Kind::integers}, {"op", Kind::object}, {"wanted", Kind::integers}},
       .infer = infer_gradient},
  };
  return ops;
}

}  // namespace brisk::graph

namespace brisk {

using graph::ValueType;

OpContext::~OpContext() = default;
CustomOp::~CustomOp() = default;

int64_t TensorType::dim(int axis) const {
  const int at = axis < 0 ? axis + rank() : axis;
  if (at < 0 || at >= rank()) throw Error(ErrorCode::shape, "TensorType::dim", cat("axis ", axis, " of ", text()));
  if (batched && at == 0)
    throw Error(ErrorCode::shape, "TensorType::dim",
                cat("dimension 0 of ", text(), " is the number of samples, which has no value yet"));
  return shape[batched ? at - 1 : at];
}

std::string TensorType::text() const { return ValueType{dtype, batched ? 1 : 0, shape}.text(); }

void op_detail::refuse_element(int index, size_t size, const char* missing) {
  throw Error(ErrorCode::state, cat("element ", index),
              *missing ? std::string(missing) : cat("there are ", size, ", counted from 0"));
}

Var custom_op(std::shared_ptr<const CustomOp> op, const std::vector<Var>& inputs, Where where) {
  if (!op) throw Error(ErrorCode::option, "custom_op.op", "is null; give an operation", where);
  const std::string name = op->name();
  if (!graph::valid_name(name))
    throw Error(ErrorCode::option, cat("CustomOp::name() = \"", name, "\""),
                "must be letters, digits, _ and -, for example learnt_swish", where);
  if (inputs.empty())
    throw Error(ErrorCode::option, cat(name, ".inputs"), "are none; an operation has at least one input", where);
  return graph::apply("custom_op", inputs, {{"op", std::move(op)}}, name, where);
}

}  // namespace brisk
