// Small nodes of every operation.
#include "graph/examples.h"

#include "support/own_ops.h"

namespace brisk::graph::test {
namespace {

using I = std::vector<int64_t>;
using D = std::vector<double>;

const std::string kNone = "none";

Attributes window(I kernel, I stride, I padding) {
  return {{"kernel", kernel}, {"padding", padding}, {"stride", stride}};
}

Attributes with(Attributes attributes, const std::string& name, Attribute value) {
  attributes.set(name, std::move(value));
  return attributes;
}

void append(std::vector<Example>& all, std::vector<Example> more) {
  for (Example& example : more) all.push_back(std::move(example));
}

std::vector<Example> conv_examples() {
  const Attributes plain = {{"dilation", I{1, 1}}, {"groups", int64_t{1}}, {"padding", I{0, 0}}, {"stride", I{1, 1}}};
  const Attributes odd = {{"dilation", I{1, 2}}, {"groups", int64_t{2}}, {"padding", I{1, 0}}, {"stride", I{2, 1}}};
  std::vector<Example> all = {
      {"conv2d", with(plain, "activation", kNone), {b({1, 28, 28}), p({20, 5, 5, 1}), p({20})}, {"[N, 20, 24, 24]"}},
      {"conv2d_input_gradient", with(odd, "input", I{4, 6, 5}), {b({6, 3, 1}), p({6, 3, 3, 2})}, {"[N, 4, 6, 5]"}},
      {"conv2d_weight_gradient", with(odd, "kernel", I{3, 3}), {b({4, 6, 5}), b({6, 3, 1})}, {"[6, 3, 3, 2]"}},
  };
  for (const char* activation : {"none", "relu", "tanh", "sigmoid"}) {
    all.push_back({"conv2d",
                   with(odd, "activation", std::string(activation)),
                   {b({4, 6, 5}, 2), p({6, 3, 3, 2}), p({6})},
                   {"[2N, 6, 3, 1]"}});
  }
  all.push_back({"conv2d", with(odd, "activation", kNone), {b({4, 6, 5}), p({6, 3, 3, 2})}, {"[N, 6, 3, 1]"}});
  return all;
}

std::vector<Example> linear_examples() {
  const auto transposed = [](bool a, bool other) { return Attributes{{"transpose_a", a}, {"transpose_b", other}}; };
  return {
      {"linear", {{"activation", kNone}}, {b({5}), p({3, 5}), p({3})}, {"[N, 3]"}},
      {"linear", {{"activation", std::string("tanh")}}, {b({5}, 2), p({3, 5})}, {"[2N, 3]"}},
      {"linear_input_gradient", {}, {b({3}), p({3, 5})}, {"[N, 5]"}},
      {"linear_weight_gradient", {}, {b({5}), b({3})}, {"[3, 5]"}},
      {"bias_add", {}, {b({3, 2, 2}), p({3})}, {"[N, 3, 2, 2]"}},
      {"channel_sum", {}, {b({3, 2, 2})}, {"[3]"}},
      {"matmul", transposed(false, false), {b({2, 3}), b({3, 4})}, {"[N, 2, 4]"}},
      {"matmul", transposed(true, false), {b({3, 2}), p({3, 4})}, {"[N, 2, 4]"}},
      {"matmul", transposed(false, true), {p({2, 3}), b({4, 3}, 2)}, {"[2N, 2, 4]"}},
      {"matmul", transposed(true, true), {p({3, 2}), p({4, 3})}, {"[2, 4]"}},
  };
}

std::vector<Example> elementwise_examples() {
  std::vector<Example> all;
  for (const char* op : {"add", "sub", "mul", "div", "minimum", "maximum"}) {
    append(all, {{op, {}, {b({2, 3}), b({2, 3})}, {"[N, 2, 3]"}},
                 {op, {}, {b({2, 3}), p({3})}, {"[N, 2, 3]"}},
                 {op, {}, {p({2, 1}), b({2, 3}, 2)}, {"[2N, 2, 3]"}},
                 {op, {}, {b({1, 3}), b({2, 1})}, {"[N, 2, 3]"}},
                 {op, {}, {b({2, 2, 3}), p({1, 3})}, {"[N, 2, 2, 3]"}},
                 {op, {}, {b({}), p({3})}, {"[N, 3]"}},
                 {op, {}, {p({}), p({2, 2})}, {"[2, 2]"}}});
  }
  for (const char* op : {"relu", "tanh", "sigmoid", "exp", "log", "identity", "gelu", "gelu_tanh", "silu", "softplus",
                         "sqrt", "abs", "stop_gradient"}) {
    append(all, {{op, {}, {b({2, 3})}, {"[N, 2, 3]"}}, {op, {}, {p({3})}, {"[3]"}}});
  }
  for (const char* op : {"relu_gradient", "tanh_gradient", "sigmoid_gradient", "gelu_gradient", "gelu_tanh_gradient",
                         "silu_gradient", "abs_gradient"}) {
    all.push_back({op, {}, {b({2, 3}), b({2, 3})}, {"[N, 2, 3]"}});
  }
  for (const char* op : {"minimum_gradient", "maximum_gradient"}) {
    append(all, {{op, {}, {b({2, 3}), b({3}), p({2, 1})}, {"[N, 2, 3]"}},
                 {op, {}, {b({3}, 2), b({3}, 2), p({})}, {"[2N, 3]"}}});
  }
  for (const double exponent : {0.0, 1.0, 2.0, 3.0, -1.5}) {
    all.push_back({"pow", {{"exponent", exponent}}, {b({2, 3})}, {"[N, 2, 3]"}});
  }
  const Attributes range = {{"high", 0.7}, {"low", -0.4}}, slope = {{"slope", 0.1}}, alpha = {{"alpha", 1.5}};
  append(all, {{"leaky_relu", slope, {b({3})}, {"[N, 3]"}},
               {"leaky_relu_gradient", slope, {b({3}), b({3})}, {"[N, 3]"}},
               {"elu", alpha, {b({3})}, {"[N, 3]"}},
               {"elu_gradient", alpha, {b({3}), b({3})}, {"[N, 3]"}},
               {"clamp", range, {b({3})}, {"[N, 3]"}},
               {"clamp_gradient", range, {b({3}), b({3})}, {"[N, 3]"}}});
  append(all, {{"reciprocal", {{"numerator", 1.5}}, {b({3})}, {"[N, 3]"}},
               {"scale", {{"factor", -2.5}}, {b({3}, 2)}, {"[2N, 3]"}},
               {"add_scalar", {{"value", 0.5}}, {b({3})}, {"[N, 3]"}},
               {"huber", {{"delta", 0.7}}, {b({3})}, {"[N, 3]"}},
               {"huber_gradient", {{"delta", 0.7}}, {b({3}), b({3})}, {"[N, 3]"}},
               {"dropout", {{"rate", 0.4}, {"stream", int64_t{77}}}, {b({7})}, {"[N, 7]"}}});
  return all;
}

std::vector<Example> compare_examples() {
  const auto relation = [](const char* name) { return Attributes{{"relation", std::string(name)}}; };
  const auto to = [](const char* dtype) { return Attributes{{"dtype", std::string(dtype)}}; };
  return {
      {"compare", relation("less"), {b({2, 3}), p({3})}, {"[N, 2, 3]"}},
      {"compare", relation("not_equal"), {p({2, 1}), p({3})}, {"[2, 3]"}},
      {"compare_scalar", with(relation("greater_equal"), "value", 0.5), {b({2, 3}, 2)}, {"[2N, 2, 3]"}},
      {"where", {}, {b({2, 3}), b({2, 3}), b({2, 3})}, {"[N, 2, 3]"}},
      {"where", {}, {b({2, 1}), b({3}), p({})}, {"[N, 2, 3]"}},
      {"where", {}, {p({3}), p({2, 3}), b({}, 2)}, {"[2N, 2, 3]"}},
      {"where_gradient", {{"chosen", false}}, {p({3}), b({2, 3})}, {"[N, 2, 3]"}},
      {"cast", to("f32"), {b({2, 3}, 1, DType::u8)}, {"[N, 2, 3]"}},
      {"cast", to("i64"), {b({}, 2)}, {"i64 [2N]"}},
      {"cast", to("u8"), {p({4}, DType::i32)}, {"u8 [4]"}},
      {"stop_gradient", {}, {b({}, 1, DType::i64)}, {"i64 [N]"}},
  };
}

std::vector<Example> shape_examples() {
  const auto reduce = [](I axes, bool keep) { return Attributes{{"axes", axes}, {"keep", keep}}; };
  std::vector<Example> all;
  for (const char* op : {"reduce_sum", "reduce_mean"}) {
    append(all, {{op, reduce({1, 2}, false), {b({2, 3, 4})}, {"[N, 2]"}},
                 {op, reduce({0}, true), {b({2, 3}, 2)}, {"[2N, 1, 3]"}},
                 {op, reduce({1}, false), {p({2, 3})}, {"[2]"}}});
  }
  for (const char* op : {"softmax", "log_softmax"}) {
    append(all, {{op, {{"axis", int64_t{0}}}, {b({4, 2})}, {"[N, 4, 2]"}},
                 {std::string(op) + "_gradient", {{"axis", int64_t{1}}}, {b({4, 2}), b({4, 2})}, {"[N, 4, 2]"}}});
  }
  append(all,
         {{"expand", {{"axes", I{1}}, {"shape", I{2, 3}}}, {b({2})}, {"[N, 2, 3]"}},
          {"expand", {{"axes", I{0, 2}}, {"shape", I{4, 2, 3}}}, {b({1})}, {"[N, 4, 2, 3]"}},
          {"expand", {{"axes", I{}}, {"shape", I{2, 3}}}, {p({1, 3})}, {"[2, 3]"}},
          {"batch_sum", {}, {b({2, 3}, 2)}, {"[2, 3]"}},
          {"reshape", {{"rows", int64_t{1}}, {"shape", I{800}}}, {b({50, 4, 4})}, {"[N, 800]"}},
          {"reshape", {{"rows", int64_t{6}}, {"shape", I{4}}}, {b({6, 2}, 2)}, {"[6N, 4]"}},
          {"reshape", {{"rows", int64_t{0}}, {"shape", I{}}}, {p({1, 1})}, {"[]"}},
          {"concat", {{"axis", int64_t{0}}}, {b({2, 3}), b({1, 3}), b({4, 3})}, {"[N, 7, 3]"}},
          {"concat", {{"axis", int64_t{1}}}, {p({2, 3}), p({2, 1})}, {"[2, 4]"}},
          {"slice", {{"axis", int64_t{1}}, {"count", int64_t{2}}, {"first", int64_t{1}}}, {b({2, 4})}, {"[N, 2, 2]"}},
          {"pad_slice", {{"axis", int64_t{0}}, {"first", int64_t{1}}, {"size", int64_t{4}}}, {b({2})}, {"[N, 4]"}},
          {"reduce_max", {{"axis", int64_t{0}}}, {b({4, 2})}, {"[N, 2]", "i32 [N, 2]"}},
          {"reduce_max_gradient",
           {{"axis", int64_t{1}}, {"size", int64_t{4}}},
           {b({2}), b({2}, 1, DType::i32)},
           {"[N, 2, 4]"}},
          {"constant", {{"shape", I{2}}, {"values", D{0.5, -1}}}, {}, {"[2]"}},
          {"permute", {{"axes", I{2, 0, 1}}}, {b({2, 3, 4})}, {"[N, 4, 2, 3]"}},
          {"permute", {{"axes", I{1, 0}}}, {p({5, 4}, DType::u8)}, {"u8 [4, 5]"}},
          {"pad", {{"after", I{0, 2}}, {"before", I{1, 3}}, {"value", 0.5}}, {b({2, 3, 4}, 2)}, {"[2N, 2, 4, 9]"}},
          {"pad", {{"after", I{1}}, {"before", I{0}}, {"value", 0.0}}, {p({3})}, {"[4]"}}});
  return all;
}

std::vector<Example> indexing_examples() {
  const ExampleInput index = b({}, 1, DType::i64), indices = b({2}, 1, DType::i64);
  return {
      {"gather", {}, {b({4}), index}, {"[N]"}},
      {"gather", {}, {b({5}, 2), b({3}, 2, DType::i64)}, {"[2N, 3]"}},
      {"gather_gradient", {{"classes", int64_t{4}}}, {b({2}), indices}, {"[N, 4]"}},
      {"argmax", {}, {b({3, 4})}, {"i64 [N, 3]"}},
      {"one_hot", {{"classes", int64_t{4}}}, {indices}, {"[N, 2, 4]"}},
      {"embedding", {}, {p({4, 3}), index}, {"[N, 3]"}},
      {"embedding", {}, {p({5, 3}), indices}, {"[N, 2, 3]"}},
      {"embedding_gradient", {{"count", int64_t{4}}}, {b({2, 3}), indices}, {"[4, 3]"}},
  };
}

std::vector<Example> random_examples() {
  const I shape = {2, 3};
  return {
      {"random_normal",
       {{"deviation", 1.0}, {"mean", 0.0}, {"shape", shape}, {"stream", int64_t{5}}},
       {},
       {"[N, 2, 3]"}},
      {"random_uniform", {{"high", 1.0}, {"low", 0.0}, {"shape", I{}}, {"stream", int64_t{5}}}, {}, {"[N]"}},
      {"stochastic_depth", {{"rate", 0.4}, {"stream", int64_t{77}}}, {b({3, 2}, 2)}, {"[2N, 3, 2]"}},
  };
}

std::vector<Example> layer_norm_examples() {
  const Attributes layer = {{"dims", int64_t{2}}, {"epsilon", 0.1}}, group = {{"epsilon", 0.1}, {"groups", int64_t{2}}};
  return {
      {"layer_norm", layer, {b({2, 3, 4}), p({3, 4}), p({3, 4})}, {"[N, 2, 3, 4]", "[N, 2]", "[N, 2]"}},
      {"layer_norm", layer, {b({3, 4}, 2)}, {"[2N, 3, 4]", "[2N]", "[2N]"}},
      {"layer_norm_gradient",
       {{"dims", int64_t{1}}},
       {b({2, 3}), b({2, 3}), b({2}), b({2}), p({3})},
       {"[N, 2, 3]", "[3]", "[3]"}},
      {"layer_norm_gradient", {{"dims", int64_t{1}}}, {b({3}), b({3}), b({}), b({})}, {"[N, 3]"}},
      {"group_norm", group, {b({4, 3}), p({4}), p({4})}, {"[N, 4, 3]", "[N, 2]", "[N, 2]"}},
      {"group_norm", group, {b({2, 3, 2}, 2)}, {"[2N, 2, 3, 2]", "[2N, 2]", "[2N, 2]"}},
      {"group_norm_gradient",
       {{"groups", int64_t{2}}},
       {b({4, 3}), b({4, 3}), b({2}), b({2}), p({4})},
       {"[N, 4, 3]", "[4]", "[4]"}},
  };
}

std::vector<Example> layer_examples() {
  const ExampleInput mean = at(Place::buffer, 0, {3}), variance = at(Place::buffer, 1, {3});
  const auto norm = [](const char* activation, bool training) {
    Attributes attributes = {{"activation", std::string(activation)}, {"epsilon", 0.1}};
    if (training) attributes.set("momentum", 0.1);
    return attributes;
  };
  const auto resize = [](const char* mode, I size, D step) {
    return Attributes{{"aligned", false}, {"mode", std::string(mode)}, {"size", size}, {"step", step}};
  };
  const std::vector<std::string> statistics = {"[N, 3, 2, 2]", "[3]", "[3]", "[3]"};
  return {
      {"batch_norm", norm("none", true), {b({3, 2, 2}), p({3}), p({3}), mean, variance}, statistics},
      {"batch_norm", norm("relu", true), {b({3, 2, 2}), p({3}), p({3}), mean, variance, b({3, 2, 2})}, statistics},
      {"batch_norm_inference", norm("tanh", false), {b({3}), p({3}), p({3}), mean, variance, b({3})}, {"[N, 3]"}},
      {"batch_norm_inference", norm("none", false), {b({3, 4}, 2), p({3}), p({3}), mean, variance}, {"[2N, 3, 4]"}},
      {"batch_norm", norm("silu", true), {b({3, 2, 2}), p({3}), p({3}), mean, variance}, statistics},
      {"batch_norm_inference", norm("silu", false), {b({3, 4}), p({3}), p({3}), mean, variance}, {"[N, 3, 4]"}},
      {"batch_norm_gradient",
       {{"activation", std::string("none")}},
       {b({3, 2}), b({3, 2}), p({3}), p({3}), p({3})},
       {"[N, 3, 2]", "[3]", "[3]"}},
      {"batch_norm_gradient",
       {{"activation", std::string("silu")}},
       {b({3, 2}), b({3, 2}), p({3}), p({3}), p({3}), p({3})},
       {"[N, 3, 2]", "[3]", "[3]"}},
      {"max_pool2d", window({2, 2}, {2, 2}, {0, 0}), {b({3, 5, 4})}, {"[N, 3, 2, 2]", "i32 [N, 3, 2, 2]"}},
      {"max_pool2d", window({3, 2}, {1, 2}, {1, 1}), {b({2, 3, 3})}, {"[N, 2, 3, 2]", "i32 [N, 2, 3, 2]"}},
      {"max_pool2d_gradient",
       with(window({2, 2}, {2, 2}, {0, 0}), "input", I{3, 5, 4}),
       {b({3, 2, 2}), b({3, 2, 2}, 1, DType::i32)},
       {"[N, 3, 5, 4]"}},
      {"avg_pool2d", window({3, 2}, {2, 1}, {1, 0}), {b({2, 5, 4}, 2)}, {"[2N, 2, 3, 3]"}},
      {"avg_pool2d_gradient",
       with(window({3, 2}, {2, 1}, {1, 0}), "input", I{2, 5, 4}),
       {b({2, 3, 3})},
       {"[N, 2, 5, 4]"}},
      {"resize2d", resize("nearest", {6, 2}, {0.5, 2}), {b({2, 3, 4})}, {"[N, 2, 6, 2]"}},
      {"resize2d_gradient",
       with(resize("bilinear", {6, 2}, {0.5, 2}), "input", I{2, 3, 4}),
       {b({2, 6, 2}, 2)},
       {"[2N, 2, 3, 4]"}},
  };
}

std::vector<Example> custom_examples() {
  const Attributes swish = {{"op", Object(std::make_shared<brisk::test::LearntSwish>())}};
  const Attributes types = with(swish, "inputs", I{0, 1, 3, 3, 2, 2, 0, 0, 1, 3});
  return {
      {"custom_op", swish, {b({3, 2, 2}), p({3})}, {"[N, 3, 2, 2]"}},
      {"custom_op", swish, {b({3, 2, 2}, 2), p({3})}, {"[2N, 3, 2, 2]"}},
      {"custom_op_gradient",
       with(types, "wanted", I{1, 1}),
       {b({3, 2, 2}), b({3, 2, 2}), p({3})},
       {"[N, 3, 2, 2]", "[3]"}},
      {"custom_op_gradient", with(types, "wanted", I{0, 1}), {b({3, 2, 2}), b({3, 2, 2}), p({3})}, {"[3]"}},
  };
}

std::vector<Example> loss_examples() {
  const Attributes options = {{"class_weights", D{}}, {"ignore_index", int64_t{-100}}, {"label_smoothing", 0.1}};
  const Attributes weighted = with(options, "class_weights", D{1, 2, 0.5, 3});
  const ExampleInput labels = b({}, 1, DType::i64);
  return {
      {"negative_log_likelihood", weighted, {b({4}), labels}, {"[N]", "[N]"}},
      {"negative_log_likelihood_gradient", with(weighted, "classes", int64_t{4}), {b({}), labels}, {"[N, 4]"}},
      {"softmax_cross_entropy", options, {b({4}), labels}, {"[N]", "[N]", "[N, 4]"}},
      {"softmax_cross_entropy", weighted, {b({4}, 2), b({}, 2, DType::i64)}, {"[2N]", "[2N]", "[2N, 4]"}},
      {"softmax_cross_entropy_gradient", weighted, {b({}), labels, b({4})}, {"[N, 4]"}},
      {"accuracy", {{"ignore_index", int64_t{-1}}}, {b({4}), labels}, {"[N]", "[N]"}},
  };
}

std::vector<Example> plan_examples() {
  const ExampleInput scalar = at(Place::scalar, 0, {}), stats = p({4});
  const auto of = [](Place place, int32_t slot) { return at(place, slot, slot == 0 ? Shape{2, 3} : Shape{5}); };
  const auto parameter = [&](int32_t slot) { return of(Place::parameter, slot); };
  const auto gradient = [&](int32_t slot) { return of(Place::gradient, slot); };
  const auto m = [&](int32_t slot) { return of(Place::moment1, slot); };
  const auto v = [&](int32_t slot) { return of(Place::moment2, slot); };
  const D two = {1, 0.5};
  const auto sgd = [&](double momentum) {
    return Attributes{{"dampening", 0.0},   {"momentum", momentum},          {"nesterov", false},
                      {"rate_scale", two},  {"shadow", std::string("none")}, {"shadowed", std::vector<int64_t>()},
                      {"weight_decay", two}};
  };
  const Attributes adam = {{"beta1", 0.9},
                           {"beta2", 0.99},
                           {"decoupled", true},
                           {"epsilon", 1e-8},
                           {"rate_scale", two},
                           {"shadow", std::string("f16")},
                           {"shadowed", std::vector<int64_t>{1}},
                           {"weight_decay", two}};
  const Attributes slot = {{"slot", int64_t{1}}};
  const std::vector<std::string> once = {"[2, 3]", "[5]"}, twice = {"[2, 3]", "[5]", "[2, 3]", "[5]"};
  std::vector<std::string> thrice = twice;
  thrice.insert(thrice.end(), once.begin(), once.end());
  thrice.push_back("f16 [5]");
  const ExampleInput scale = at(Place::state, 0, {});
  const ExampleInput counters{{DType::i64, 0, {4}}, Place::state, 1};
  return {
      {"load", {}, {b({3, 2}, 1, DType::i64)}, {"i64 [N, 3, 2]"}},
      {"load", {}, {b({3, 2})}, {"[N, 3, 2]"}},
      {"store", slot, {b({3})}, {"[N, 3]"}},
      {"store_gradient", slot, {p({5})}, {"[5]"}},
      {"total", slot, {b({}, 2), b({}, 2)}, {"[2]"}},
      {"seed_rows", {}, {scalar, b({}, 2)}, {"[2N]"}},
      {"seed_rows", {}, {scalar, b({}, 2), scale}, {"[2N]"}},
      {"seed_count", {{"factor", 0.3}}, {b({})}, {"[]"}},
      {"gradient_stats", {{"clip_norm", 1.0}, {"scaled", false}}, {scalar, gradient(0), gradient(1)}, {"[4]"}},
      {"gradient_stats", {{"clip_norm", 1.0}, {"scaled", true}}, {scalar, scale, gradient(0), gradient(1)}, {"[4]"}},
      {"scale_update",
       {{"backoff", 0.5},
        {"growth", 2.0},
        {"interval", int64_t{4}},
        {"maximum", 8.0},
        {"minimum", 1.0},
        {"scaled", true}},
       {stats, scale, counters},
       {"[]", "i64 [4]"}},
      {"select_scalars", {{"slots", std::vector<int64_t>{2, 0}}}, {counters}, {"[]", "[]"}},
      {"commit_staged", {}, {stats, at(Place::staged, 4, {3}), at(Place::staged, 6, {3})}, {"[3]", "[3]"}},
      {"sgd_walk", sgd(0), {scalar, scalar, scalar, stats, parameter(0), gradient(0), parameter(1), gradient(1)}, once},
      {"sgd_walk",
       sgd(0.9),
       {scalar, scalar, scalar, stats, parameter(0), gradient(0), m(0), parameter(1), gradient(1), m(1)},
       twice},
      {"adam_walk",
       adam,
       {scalar, scalar, scalar, scalar, stats, parameter(0), gradient(0), m(0), v(0), parameter(1), gradient(1), m(1),
        v(1)},
       thrice},
      {"batch_norm_commit",
       {{"chained", false}, {"momentum", 0.1}},
       {p({3}), p({3}), at(Place::buffer, 4, {3}), at(Place::buffer, 6, {3})},
       {"[3]", "[3]"}},
      {"batch_norm_commit",
       {{"chained", true}, {"momentum", 0.1}},
       {p({3}), p({3}), at(Place::buffer, 4, {3}), at(Place::buffer, 6, {3}), at(Place::staged, 4, {3}),
        at(Place::staged, 6, {3})},
       {"[3]", "[3]"}},
  };
}

}  // namespace

const std::vector<Example>& examples() {
  static const std::vector<Example> all = [] {
    std::vector<Example> made = conv_examples();
    append(made, linear_examples());
    append(made, elementwise_examples());
    append(made, compare_examples());
    append(made, shape_examples());
    append(made, indexing_examples());
    append(made, random_examples());
    append(made, layer_norm_examples());
    append(made, layer_examples());
    append(made, custom_examples());
    append(made, loss_examples());
    append(made, plan_examples());
    return made;
  }();
  return all;
}

Built inputs_of(const Example& example) {
  Built built;
  for (const ExampleInput& input : example.inputs) {
    built.inputs.push_back(built.graph.add_value(input.type, input.place, input.slot));
  }
  return built;
}

Graph build(const Example& example) {
  Built built = inputs_of(example);
  built.graph.add_node(example.op, built.inputs, example.attributes, "example", {"net.cpp", 7});
  return built.graph;
}

}  // namespace brisk::graph::test
