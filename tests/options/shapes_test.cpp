// What does not fit an operation: the message names the operation, its layer, the user's line, what it got and from
// where, and what it takes.
#include <gtest/gtest.h>

#include "options/table.h"

namespace brisk::test {
namespace {

struct Mistake {
  std::string operation;  // as the message begins
  Shape shape;            // of the input
  DType dtype;
  std::function<Var(Var)> use;
  std::vector<std::string> says;  // what was given and what is wanted
  int line;
};

Mistake mistake(std::string operation, Shape shape, std::function<Var(Var)> use, std::vector<std::string> says,
                DType dtype = DType::f32, int line = __builtin_LINE()) {
  return {std::move(operation), shape, dtype, std::move(use), std::move(says), line};
}

std::string refusal(const Mistake& m, Where& where) {
  try {
    trace(m.shape, m.use, m.dtype);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::shape) << error.what();
    where = error.where();
    return error.what();
  }
  return "nothing was thrown";
}

void check(const std::vector<Mistake>& mistakes) {
  for (const Mistake& m : mistakes) {
    SCOPED_TRACE(m.operation + " of [N, " + m.shape.text().substr(1));
    Where where;
    const std::string text = refusal(m, where);
    EXPECT_EQ(text.rfind("Error [shape] " + m.operation, 0), 0u) << text;
    EXPECT_NE(text.find("shapes_test.cpp:"), std::string::npos) << text;
    if (where.known()) {  // operators name their operands' lines
      EXPECT_NEAR(where.line, m.line, 3) << text;
    }
    for (const std::string& part : m.says) EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
  }
}

Var number(Shape shape, const char* name = "p") { return parameter(name, shape); }

TEST(ShapeMistakes, Layers) {
  check({
      mistake("linear 'fc1'", {50, 4, 4}, [](Var x) { return linear(relu(x), 10); },
              {"[N, features]", "[N, 50, 4, 4]", "from relu", "flatten()"}),
      mistake("linear 'fc1'", {}, [](Var x) { return linear(x, 10); }, {"[N, features]", "got [N]"}),
      mistake(
          "linear 'fc1'", {3}, [](Var x) { return linear(x, 10); }, {"f32", "i64"}, DType::i64),
      mistake("linear 'fc1'", {3},
              [](Var) {
                return linear(number({4, 4}), 10);
              },
              {"[N, features]", "[4, 4]"}),
      mistake("conv2d 'conv1'", {784}, [](Var x) { return conv2d(x, {.channels = 2, .kernel = 3}); },
              {"[N, channels, height, width]", "[N, 784]"}),
      mistake("conv2d 'conv1'", {1, 2, 2}, [](Var x) { return conv2d(x, {.channels = 2, .kernel = 3}); },
              {"kernel [3, 3]", "2 x 2", "[N, 1, 2, 2]"}),
      mistake(
          "conv2d 'conv1'", {1, 8, 8}, [](Var x) { return conv2d(x, {.channels = 2, .kernel = 3}); },
          {"f32", "got u8", "cast(x, DType::f32)"}, DType::u8),
      mistake("conv2d 'conv1'", {3},
              [](Var) {
                return conv2d(number({1, 8, 8}), {.channels = 2, .kernel = 3});
              },
              {"[N, channels, height, width]", "[1, 8, 8]"}),
      mistake("conv_transpose2d", {784}, [](Var x) { return conv_transpose2d(x, {.channels = 2, .kernel = 3}); },
              {"[N, channels, height, width]", "[N, 784]"}),
      mistake("max_pool2d 'pool1'", {5, 5}, [](Var x) { return max_pool2d(x, {.kernel = 2}); },
              {"[N, channels, height, width]", "[N, 5, 5]"}),
      mistake("max_pool2d 'pool1'", {1, 2, 2}, [](Var x) { return max_pool2d(x, {.kernel = 3}); },
              {"kernel [3, 3]", "2 x 2"}),
      mistake("avg_pool2d 'pool1'", {5}, [](Var x) { return avg_pool2d(x, {.kernel = 2}); },
              {"[N, channels, height, width]", "[N, 5]"}),
      mistake("global_avg_pool2d", {5}, [](Var x) { return global_avg_pool2d(x); },
              {"[N, channels, height, width]", "[N, 5]"}),
      mistake("resize2d", {5}, [](Var x) { return resize2d(x, {.scale = 2}); },
              {"[N, channels, height, width]", "[N, 5]"}),
      mistake("batch_norm 'bn1'", {}, [](Var x) { return batch_norm(x); }, {"[N, channels, ...]", "got [N]"}),
      mistake(
          "batch_norm 'bn1'", {3}, [](Var x) { return batch_norm(x); }, {"f32", "i64"}, DType::i64),
      mistake("group_norm 'gn1'", {}, [](Var x) { return group_norm(x, {.groups = 1}); },
              {"[N, channels, ...]", "got [N]"}),
      mistake("normalize", {}, [](Var x) { return normalize(x, {.deviation = {1}, .mean = {0}}); },
              {"[N, channels, ...]", "got [N]"}),
      mistake(
          "dropout 'dropout1'", {3}, [](Var x) { return dropout(x, 0.5); }, {"f32", "i64"}, DType::i64),
      mistake("embedding 'embedding1'", {3}, [](Var x) { return embedding(x, {.count = 4, .features = 2}); },
              {"i64", "f32"}),
      mistake(
          "layer_norm 'ln1'", {3}, [](Var x) { return layer_norm(x); }, {"f32", "i64"}, DType::i64),
  });
}

TEST(ShapeMistakes, Functions) {
  check({
      mistake("softmax.axis = 2", {3}, [](Var x) { return softmax(x, {.axis = 2}); }, {"[N, 3]", "1 to 1"}),
      mistake("concat", {3},
              [](Var x) {
                return concat({x, relu(reshape(x, {-1, 1, 3}))});
              },
              {"[N, 3]", "[N, 1, 3]"}),
      mistake("reshape", {6},
              [](Var x) {
                return reshape(x, {-1, 4});
              },
              {"[N, 6]", "do not fit"}),
      mistake("reshape", {6},
              [](Var x) {
                return reshape(x, {2, 3});
              },
              {"[N, 6]", "must be -1"}),
      mistake("permute", {2, 3},
              [](Var x) {
                return permute(x, {0, 1});
              },
              {"[N, 2, 3]", "3 dimensions"}),
      mistake("permute", {2, 3},
              [](Var x) {
                return permute(x, {1, 0, 2});
              },
              {"[N, 2, 3]", "must be 0"}),
      mistake("transpose.a = 0", {2, 3}, [](Var x) { return transpose(x, 0, 1); }, {"[N, 2, 3]", "samples"}),
      mistake("to_channels_first", {2, 3}, [](Var x) { return to_channels_first(x); }, {"[N, 2, 3]", "must be"}),
      mistake("chunk.parts = 4", {6}, [](Var x) { return chunk(x, 4)[0]; }, {"[N, 6]", "must divide"}),
      mistake("matmul", {2, 3}, [](Var x) { return matmul(x, x); }, {"(3)", "(2)", "[N, 2, 3]"}),
      mistake("matmul", {3}, [](Var x) { return matmul(x, x); }, {"[M, K]", "[N, 3]"}),
      mistake("gather", {3}, [](Var x) { return gather(x, x); }, {"i64", "f32", "[N, 3]"}),
      mistake("gather", {}, [](Var x) { return gather(x, cast(x, DType::i64)); }, {"got [N]"}),
      mistake(
          "argmax", {3}, [](Var x) { return argmax(x); }, {"f32", "i64", "[N, 3]"}, DType::i64),
      mistake("one_hot", {3}, [](Var x) { return one_hot(x, 4); }, {"i64", "f32", "[N, 3]"}),
      mistake("bias_add", {3}, [](Var x) { return bias_add(x, number({4})); }, {"[4]", "3"}),
      mistake("where", {3}, [](Var x) { return where(x, x, number({4})); }, {"3", "4", "do not fit together"}),
      mistake("minimum", {3}, [](Var x) { return minimum(x, number({4})); }, {"[N, 3]", "[4]"}),
      mistake(
          "exp", {3}, [](Var x) { return exp(x); }, {"f32", "i64", "cast(x, DType::f32)"}, DType::i64),
      mistake("reduce_sum.axes", {3},
              [](Var x) {
                return reduce_sum(x, {.axes = {1, 1}});
              },
              {"twice"}),
      mistake("reduce_max.axis = 0", {3}, [](Var x) { return reduce_max(x, {.axis = 0}); }, {"samples", "[N, 3]"}),
      mistake("reduce_min.axis = 2", {3}, [](Var x) { return reduce_min(x, {.axis = 2}); }, {"1 to 1", "[N, 3]"}),
      mistake(
          "reduce_min", {3}, [](Var x) { return reduce_min(x); }, {"f32", "i64", "[N, 3]"}, DType::i64),
      mistake("batch_mean", {3}, [](Var) { return batch_mean(number({3})); }, {"[3]"}),
  });
}

TEST(ShapeMistakes, Operators) {
  check({
      mistake("add", {3}, [](Var x) { return relu(x) + number({4}); }, {"[N, 3] from relu", "[4]"}),
      mistake("mul", {2, 3},
              [](Var x) {
                return relu(x) * number({2, 2});
              },
              {"[N, 2, 3] from relu", "[2, 2]"}),
      mistake("sub", {3}, [](Var x) { return relu(x) - cast(x, DType::i64); }, {"f32", "i64"}),
  });
}

TEST(ShapeMistakes, Losses) {
  check({
      mistake("mse", {1},
              [](Var x) {
                mse(x, reshape(x, {-1}));
                return x;
              },
              {"[N, 1]", "target [N]", "reshape one"}),
      mistake("huber", {2},
              [](Var x) {
                huber(x, slice(x, {.count = 1}));
                return x;
              },
              {"[N, 2]", "[N, 1]"}),
      mistake("cross_entropy", {4, 4},
              [](Var x) {
                cross_entropy(x, x);
                return x;
              },
              {"[N, classes]", "[N, 4, 4]"}),
      mistake("cross_entropy", {4},
              [](Var x) {
                cross_entropy(x, slice(x, {.count = 3}));
                return x;
              },
              {"[N, 4]", "[N, 3]"}),
      mistake("accuracy", {4},
              [](Var x) {
                accuracy(x, x);
                return x;
              },
              {"i64", "[N]", "[N, 4]"}),
      mistake("bce_with_logits", {2},
              [](Var x) {
                bce_with_logits(x, slice(x, {.count = 1}));
                return x;
              },
              {"[N, 2]", "[N, 1]"}),
      mistake("sample_mean", {2},
              [](Var x) {
                sample_mean(number({2}));
                return x;
              },
              {"[2]"}),
      mistake("triplet_margin", {2},
              [](Var x) {
                triplet_margin(x, x, slice(x, {.count = 1}));
                return x;
              },
              {"[N, 2]", "[N, 1]"}),
      mistake("kl_divergence", {2},
              [](Var x) {
                kl_divergence(x, slice(x, {.count = 1}));
                return x;
              },
              {"[N, 2]", "[N, 1]"}),
  });
}

}  // namespace
}  // namespace brisk::test
