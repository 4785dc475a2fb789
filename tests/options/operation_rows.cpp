// Numbers of the operations.
#include "options/table.h"

namespace brisk::test {
namespace {

const Shape kImage{6, 5, 5};
const Shape kRow{6};

std::vector<Row> convolutions() {
  const auto conv = [](auto set) {
    return [set](auto value) {
      trace(kImage, [&](Var x) {
        Conv2dOptions options{.channels = 6, .kernel = 3, .padding = 2};
        set(options, value);
        return conv2d(x, options);
      });
    };
  };
  const auto transposed = [](auto set) {
    return [set](auto value) {
      trace(kImage, [&](Var x) {
        ConvTranspose2dOptions options{.channels = 6, .kernel = 3, .stride = 3};
        set(options, value);
        return conv_transpose2d(x, options);
      });
    };
  };
  return {
      whole("Conv2dOptions.channels", 1, INT32_MAX, conv([](auto& o, int64_t v) { o.channels = v; }), {1, 7}),
      sizes("Conv2dOptions.dilation", 1, INT32_MAX, conv([](auto& o, Size2 v) { o.dilation = v; }), {1, 2}),
      whole("Conv2dOptions.groups", 1, INT32_MAX, conv([](auto& o, int64_t v) { o.groups = v; }), {1, 6}),
      sizes("Conv2dOptions.kernel", 1, INT32_MAX, conv([](auto& o, Size2 v) { o.kernel = v; }), {1, 3}),
      sizes("Conv2dOptions.padding", 0, INT32_MAX, conv([](auto& o, Size2 v) { o.padding = v; }), {0, 2}),
      sizes("Conv2dOptions.stride", 1, INT32_MAX, conv([](auto& o, Size2 v) { o.stride = v; }), {1, INT32_MAX}),
      whole("ConvTranspose2dOptions.channels", 1, INT32_MAX, transposed([](auto& o, int64_t v) { o.channels = v; }),
            {1, 7}),
      sizes("ConvTranspose2dOptions.dilation", 1, INT32_MAX, transposed([](auto& o, Size2 v) { o.dilation = v; }),
            {1, 2}),
      whole("ConvTranspose2dOptions.groups", 1, INT32_MAX, transposed([](auto& o, int64_t v) { o.groups = v; }),
            {1, 6}),
      sizes("ConvTranspose2dOptions.kernel", 1, INT32_MAX, transposed([](auto& o, Size2 v) { o.kernel = v; }), {1, 3}),
      sizes("ConvTranspose2dOptions.output_padding", 0, 2, transposed([](auto& o, Size2 v) { o.output_padding = v; }),
            {0, 2}),
      sizes("ConvTranspose2dOptions.padding", 0, INT32_MAX, transposed([](auto& o, Size2 v) { o.padding = v; }),
            {0, 2}),
      sizes("ConvTranspose2dOptions.stride", 1, INT32_MAX, transposed([](auto& o, Size2 v) { o.stride = v; }), {1, 3}),
  };
}

std::vector<Row> images() {
  const auto pool = [](auto set) {
    return [set](Size2 value) {
      trace(kImage, [&](Var x) {
        Pool2dOptions options{.kernel = 3};
        set(options, value);
        return max_pool2d(x, options);
      });
    };
  };
  const auto padded = [](auto set) {
    return [set](auto value) {
      trace(kImage, [&](Var x) {
        PadOptions options;
        set(options, value);
        return pad(x, options);
      });
    };
  };
  const auto resized = [](Resize2dOptions options) { trace(kImage, [&](Var x) { return resize2d(x, options); }); };
  Row scale = real("Resize2dOptions.scale", {.low = 0, .high = 4.294e8, .low_open = true},
                   [=](double v) { resized({.scale = v}); }, {0.2, 3});
  scale.outside.push_back({"1e+300", [=] { resized({.scale = 1e300}); }});
  return {
      sizes("Pool2dOptions.kernel", 1, INT32_MAX, pool([](auto& o, Size2 v) { o.kernel = v; }), {1, 5}),
      sizes("Pool2dOptions.padding", 0, 1, pool([](auto& o, Size2 v) { o.padding = v; }), {0, 1}),
      sizes("Pool2dOptions.stride", 0, INT32_MAX, pool([](auto& o, Size2 v) { o.stride = v; }), {0, INT32_MAX}),
      scale,
      sizes("Resize2dOptions.size", 1, INT32_MAX, [=](Size2 v) { resized({.size = v}); }, {1, 7}),
      whole("PadOptions.bottom", 0, INT32_MAX, padded([](auto& o, int64_t v) { o.bottom = v; }), {0, 3}),
      whole("PadOptions.left", 0, INT32_MAX, padded([](auto& o, int64_t v) { o.left = v; }), {0, 3}),
      whole("PadOptions.right", 0, INT32_MAX, padded([](auto& o, int64_t v) { o.right = v; }), {0, 3}),
      whole("PadOptions.top", 0, INT32_MAX, padded([](auto& o, int64_t v) { o.top = v; }), {0, 3}),
      real("PadOptions.value", {.infinite = true}, padded([](auto& o, double v) { o.value = v; })),
  };
}

std::vector<Row> axes() {
  const auto row = [](const char* field, const std::function<Var(Var, int64_t)>& f) {
    return whole(
        field, -1, 1, [f](int64_t value) { trace(kRow, [&](Var x) { return f(x, value); }); }, {}, ErrorCode::shape);
  };
  const auto matrix = [](const char* field, const std::function<Var(Var, int64_t)>& f) {
    return whole(
        field, -2, 2,
        [f](int64_t value) {
          trace({2, 3}, [&](Var x) { return f(x, value); });
        },
        {-2, -1, 1, 2}, ErrorCode::shape);
  };
  const auto cut = [](const char* field, int64_t lowest, int64_t highest, auto set) {
    return whole(field, lowest, highest, [set](int64_t value) {
      trace(kRow, [&](Var x) {
        SliceOptions options;
        set(options, value);
        return slice(x, options);
      });
    });
  };
  return {
      row("ConcatOptions.axis",
          [](Var x, int64_t axis) {
            return concat({x, x}, {.axis = axis});
          }),
      row("SliceOptions.axis", [](Var x, int64_t axis) { return slice(x, {.axis = axis}); }),
      row("ChunkOptions.axis", [](Var x, int64_t axis) { return chunk(x, 2, {.axis = axis})[0]; }),
      row("ReduceMaxOptions.axis", [](Var x, int64_t axis) { return reduce_max(x, {.axis = axis}); }),
      row("ReduceOptions.axes", [](Var x, int64_t axis) { return reduce_sum(x, {.axes = {axis}}); }),
      row("SoftmaxOptions.axis", [](Var x, int64_t axis) { return softmax(x, {.axis = axis}); }),
      matrix("transpose.a", [](Var x, int64_t axis) { return transpose(x, axis, 1); }),
      matrix("transpose.b", [](Var x, int64_t axis) { return transpose(x, 1, axis); }),
      cut("SliceOptions.count", 0, 6, [](SliceOptions& o, int64_t v) { o.count = v; }),
      cut("SliceOptions.first", -6, 5, [](SliceOptions& o, int64_t v) { o.first = v; }),
      whole(
          "chunk.parts", 1, 6, [](int64_t v) { trace(kRow, [&](Var x) { return chunk(x, v)[0]; }); }, {},
          ErrorCode::shape),
  };
}

std::vector<Row> layers() {
  const auto image = [](const std::function<Var(Var, double)>& f) {
    return [f](double value) { trace(kImage, [&](Var x) { return f(x, value); }); };
  };
  const auto counted = [](const std::function<Var(Var, int64_t)>& f) {
    return [f](int64_t value) { trace(kRow, [&](Var x) { return f(x, value); }); };
  };
  const auto indexed = [](const std::function<Var(Var, int64_t)>& f) {
    return [f](int64_t value) {
      trace(
          {}, [&](Var x) { return f(x, value); }, DType::i64);
    };
  };
  const auto six = [](double value) { return std::vector<double>(6, value); };
  return {
      real("BatchNormOptions.epsilon", kBetweenZeroAndOne,
           image([](Var x, double v) { return batch_norm(x, {.epsilon = v}); })),
      real("BatchNormOptions.momentum", kShare, image([](Var x, double v) { return batch_norm(x, {.momentum = v}); })),
      whole("LayerNormOptions.dims", 1, 1, counted([](Var x, int64_t v) { return layer_norm(x, {.dims = v}); })),
      real("LayerNormOptions.epsilon", kBetweenZeroAndOne,
           image([](Var x, double v) { return layer_norm(x, {.epsilon = v}); })),
      real("GroupNormOptions.epsilon", kBetweenZeroAndOne,
           image([](Var x, double v) { return group_norm(x, {.epsilon = v, .groups = 2}); })),
      whole("GroupNormOptions.groups", 1, INT32_MAX,
            counted([](Var x, int64_t v) { return group_norm(x, {.groups = v}); }), {1, 6}),
      real("NormalizeOptions.deviation", kPositiveF32,
           image([=](Var x, double v) { return normalize(x, {.deviation = six(v), .mean = six(0)}); })),
      real("NormalizeOptions.mean", kF32,
           image([=](Var x, double v) { return normalize(x, {.deviation = six(1), .mean = six(v)}); })),
      whole("linear.features", 1, INT32_MAX, counted([](Var x, int64_t v) { return linear(x, v); }), {1, 5}),
      whole("one_hot.classes", 1, INT32_MAX, indexed([](Var x, int64_t v) { return one_hot(x, v); })),
      whole("EmbeddingOptions.count", 1, INT32_MAX,
            indexed([](Var x, int64_t v) { return embedding(x, {.count = v, .features = 2}); }), {1, 5}),
      whole("EmbeddingOptions.features", 1, INT32_MAX,
            indexed([](Var x, int64_t v) { return embedding(x, {.count = 2, .features = v}); }), {1, 5}),
      real("Init.value", kNotNegativeF32, image([](Var x, double v) {
             return x * parameter("w", {6, 1, 1}, {.init = init::uniform(v)});
           }),
           {0, 0.1}),
  };
}

std::vector<Row> elementwise() {
  const auto of = [](const std::function<Var(Var, double)>& f) {
    return [f](double value) { trace(kRow, [&](Var x) { return f(x, value); }); };
  };
  return {
      real("leaky_relu.slope", kNotNegativeF32, of([](Var x, double v) { return leaky_relu(x, v); })),
      real("elu.alpha", kNotNegativeF32, of([](Var x, double v) { return elu(x, v); })),
      real("pow.exponent", kF32, of([](Var x, double v) { return pow(x, v); })),
      real("clamp.low", {.high = 1, .infinite = true}, of([](Var x, double v) { return clamp(x, v, 1); }),
           {-kInfinity, 1}),
      real("clamp.high", {.low = 1, .infinite = true}, of([](Var x, double v) { return clamp(x, 1, v); }),
           {1, kInfinity}),
      real("equal.value", kF32, of([](Var x, double v) { return equal(x, v); })),
      real("not_equal.value", kF32, of([](Var x, double v) { return not_equal(x, v); })),
      real("constant.values", {.infinite = true}, of([](Var x, double v) { return x + constant({v}, {1}); })),
      real("dropout.rate", kShare, of([](Var x, double v) { return dropout(x, v); })),
      real("stochastic_depth.rate", kShareBelowOne, of([](Var x, double v) { return stochastic_depth(x, v); })),
      real("RandomNormalOptions.deviation", kNotNegativeF32,
           of([](Var x, double v) { return x + random_normal({6}, {.deviation = v}); })),
      real("RandomNormalOptions.mean", kF32, of([](Var x, double v) { return x + random_normal({6}, {.mean = v}); })),
      real("RandomUniformOptions.high", {.low = 0, .high = kLargestF32, .low_open = true},
           of([](Var x, double v) { return x + random_uniform({6}, {.high = v}); })),
      real("RandomUniformOptions.low", {.low = -kLargestF32, .high = 1, .high_open = true},
           of([](Var x, double v) { return x + random_uniform({6}, {.low = v}); })),
  };
}

struct Twice : CustomOp {
  std::string name() const override { return "twice"; }
  TensorType infer(TensorTypes in) const override { return in[0]; }
  void forward(const OpContext&, ConstViews in, Views out) const override { scale(in[0], out[0]); }
  void backward(const OpContext&, const OpBackward& g) const override {
    scale(g.output_gradients[0], g.input_gradients[0]);
  }
  static void scale(const ConstView& from, const View& to) {
    for (int64_t i = 0; i < from.count(); ++i) to.data<float>()[i] = 2 * from.data<float>()[i];
  }
};

std::vector<Row> own_operations() {
  const auto check = [](const CheckGradientOptions& options) { check_gradient(Twice{}, {{2, 3}}, options); };
  return {
      whole<int>("CheckGradientOptions.directions", 0, 1 << 20, [=](int v) { check({.directions = v}); }, {0, 2}),
      whole("CheckGradientOptions.elements", 1, INT64_MAX, [=](int64_t v) { check({.elements = v}); }),
      real("CheckGradientOptions.tolerance", kBetweenZeroAndOne, [=](double v) { check({.tolerance = v}); }),
      real("CopyWeightsOptions.blend", kShare,
           [](double v) {
             Model model([](Var x) { return linear(x, 1); }, {1});
             model.clone().copy_weights_from(model, {.blend = v});
           }),
  };
}

}  // namespace

std::vector<Row> operation_rows() {
  std::vector<Row> all;
  for (const auto& rows : {convolutions(), images(), axes(), layers(), elementwise(), own_operations()})
    all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

std::vector<Row> loss_rows() {
  const auto of = [](const std::function<Mean(Var)>& f) {
    trace({3}, [&](Var x) {
      f(x);
      return x;
    });
  };
  const auto with_labels = [](const std::function<Mean(Var, Var)>& f) {
    Model(
        [&](const Vars& in) {
          f(in["input"], in["target"]);
          return Vars{{"output", in["input"]}};
        },
        {{"input", {3}}, {"target", {}, DType::i64}});
  };
  return {
      real("CrossEntropyOptions.class_weights", kNotNegativeF32,
           [=](double v) {
             with_labels([&](Var x, Var y) { return cross_entropy(x, y, {.class_weights = {1, v, 2}}); });
           }),
      whole("CrossEntropyOptions.ignore_index", INT64_MIN, INT64_MAX,
            [=](int64_t v) { with_labels([&](Var x, Var y) { return cross_entropy(x, y, {.ignore_index = v}); }); }),
      real("CrossEntropyOptions.label_smoothing", kShareBelowOne,
           [=](double v) { with_labels([&](Var x, Var y) { return cross_entropy(x, y, {.label_smoothing = v}); }); }),
      whole("AccuracyOptions.ignore_index", INT64_MIN, INT64_MAX,
            [=](int64_t v) { with_labels([&](Var x, Var y) { return accuracy(x, y, {.ignore_index = v}); }); }),
      real("BceWithLogitsOptions.pos_weight", kNotNegativeF32,
           [=](double v) { of([&](Var x) { return bce_with_logits(x, x, {.pos_weight = v}); }); }),
      real("bce_with_logits.target", kShare, [=](double v) { of([&](Var x) { return bce_with_logits(x, v); }); }),
      real("HuberOptions.delta", kPositiveF32, [=](double v) { of([&](Var x) { return huber(x, x, {.delta = v}); }); }),
      real("TripletMarginOptions.epsilon", kNotNegativeF32,
           [=](double v) { of([&](Var x) { return triplet_margin(x, x, x, {.epsilon = v}); }); }),
      real("TripletMarginOptions.margin", kNotNegativeF32,
           [=](double v) { of([&](Var x) { return triplet_margin(x, x, x, {.margin = v}); }); }),
      real("Mean.factor", kF32, [=](double v) { of([&](Var x) { return v * mse(x, x); }); }),
  };
}

}  // namespace brisk::test
