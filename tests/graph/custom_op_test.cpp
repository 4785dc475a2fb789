// Operations of the user's own as the front end and the passes see them.
#include <gtest/gtest.h>

#include "brisk/ops/elementwise.h"
#include "brisk/ops/shape.h"
#include "graph/examples.h"
#include "graph/trace.h"
#include "support/own_ops.h"

namespace brisk {
namespace {

using graph::test::error_of;

/// Infers what the test says and is never run.
struct Infers : CustomOp {
  TensorType (*rule)(TensorTypes in);
  std::string called = "infers";
  explicit Infers(TensorType (*wanted)(TensorTypes in)) : rule(wanted) {}
  std::string name() const override { return called; }
  TensorType infer(TensorTypes in) const override { return rule(in); }
  void forward(const OpContext&, ConstViews, Views) const override {}
  void backward(const OpContext&, const OpBackward&) const override {}
};

class CustomOps : public ::testing::Test {
 protected:
  CustomOps() : tracer_(std::make_shared<graph::Tracer>("model", 0, true)), guard_(tracer_) {}
  Var input(Shape shape, DType dtype = DType::f32) {
    const std::string name = "x" + std::to_string(tracer_->graph.inputs.size());
    return graph::declare_inputs(tracer_, {Field{name, shape, dtype}})[name];
  }
  std::string refusal(TensorType (*rule)(TensorTypes in)) {
    return error_of([&] { custom_op(Infers(rule), {input({3, 2}), parameter("w", {4})}, Where{"net.cpp", 7}); });
  }
  std::shared_ptr<graph::Tracer> tracer_;
  graph::TraceGuard guard_;
};

TEST_F(CustomOps, AreNamedAndTypedByTheObject) {
  const Var x = input({3, 2, 2});
  const Var y = test::learnt_swish(x);
  EXPECT_EQ(y.text(), "[N, 3, 2, 2]");
  const graph::Node& node = tracer_->graph.nodes.back();
  EXPECT_EQ(graph::label(node), "learnt_swish 'learnt_swish1'");
  EXPECT_EQ(graph::backward_reads(node), Reads::inputs);
  EXPECT_NE(graph::print(tracer_->graph)
                .find("learnt_swish 'learnt_swish1'(%1, %2 parameter b) -> %3 [N, 3, 2, 2] "
                      "{op = learnt_swish} (own_ops.cpp:"),
            std::string::npos)
      << graph::print(tracer_->graph);
  EXPECT_NE(graph::dot(tracer_->graph).find("learnt_swish 'learnt_swish1'"), std::string::npos);
  EXPECT_EQ(tracer_->specs[0].name, "b");
  EXPECT_FALSE(tracer_->specs[0].decay);
}

TEST_F(CustomOps, TypesHaveTheSamplesInFront) {
  const Var y =
      custom_op(Infers([](TensorTypes in) {
                  EXPECT_EQ(in.size(), 2u);
                  EXPECT_EQ(in[0].rank(), 3);
                  EXPECT_EQ(in[0].dim(1), 3);
                  EXPECT_EQ(in[0].dim(-1), 2);
                  EXPECT_EQ(in[0].text(), "[N, 3, 2]");
                  EXPECT_EQ(in[1].dim(0), 4);
                  EXPECT_FALSE(in[1].batched);
                  EXPECT_NE(error_of([&] { in[0].dim(0); }).find("number of samples"), std::string::npos);
                  EXPECT_NE(error_of([&] { in[0].dim(3); }).find("axis 3 of [N, 3, 2]"), std::string::npos);
                  EXPECT_NE(error_of([&] { in[2].dim(0); }).find("element 2: there are 2"), std::string::npos);
                  TensorType out = in[0];
                  out.shape = {5};
                  return out;
                }),
                {reshape(input({3, 2, 7}), {-1, 3, 2}), parameter("w", {4})});
  EXPECT_EQ(y.text(), "[7N, 5]") << "rows stay rows";
}

TEST_F(CustomOps, WhatInferMayNotSayIsRefusedAtTheUsersLine) {
  EXPECT_EQ(refusal([](TensorTypes) -> TensorType { throw std::runtime_error("needs 4 channels"); }),
            "Error [shape] infers 'infers1' (net.cpp:7): infer() refuses its inputs: needs 4 channels");
  EXPECT_NE(refusal([](TensorTypes in) { return TensorType{in[0].shape}; }).find("must be batched"), std::string::npos);
  EXPECT_NE(refusal([](TensorTypes) {
              return TensorType{{3}, DType::f16, true};
            }).find("returned f16"),
            std::string::npos);
  EXPECT_NE(refusal([](TensorTypes) {
              return TensorType{{1, 1, 1, 1, 1, 1, 1, 1}, DType::f32, true};
            }).find("the output has 9 dimensions"),
            std::string::npos);
  EXPECT_NE(refusal([](TensorTypes) { return TensorType{{0}, DType::f32, true}; }).find("is empty"), std::string::npos);
  EXPECT_NE(error_of([] {
              custom_op(Infers([](TensorTypes) { return TensorType{{3}, DType::f32, true}; }), {parameter("w", {4})});
            }).find("must not be batched"),
            std::string::npos);
}

TEST_F(CustomOps, NamesAndInputsAreChecked) {
  Infers op([](TensorTypes in) { return in[0]; });
  const Var x = input({3});
  for (const char* name : {"", "a.b", "a/b", "two words"}) {
    op.called = name;
    EXPECT_NE(error_of([&] {
                custom_op(op, {x}, Where{"net.cpp", 7});
              }).find("Error [option] CustomOp::name() = \"" + op.called + "\" (net.cpp:7)"),
              std::string::npos)
        << name;
  }
  op.called = "fine";
  EXPECT_NE(error_of([&] { custom_op(op, {}); }).find("at least one input"), std::string::npos);
  EXPECT_NE(error_of([&] { custom_op(std::shared_ptr<const CustomOp>(), {x}); }).find("is null"), std::string::npos);
  const auto shared = std::make_shared<Infers>(op);
  custom_op(shared, {x});
  EXPECT_EQ(&tracer_->graph.nodes.back().attributes.object("op"), shared.get())
      << "an object given whole is not copied";
}

}  // namespace
}  // namespace brisk
