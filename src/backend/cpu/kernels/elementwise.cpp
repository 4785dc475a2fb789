// Runs a tile program: for each tile, expand the broadcast operands, then one pass over the tile for each step.
#include "backend/cpu/kernels/elementwise.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/kernels/functions.h"
#include "backend/cpu/kernels/power.h"
#include "backend/cpu/kernels/random.h"

namespace brisk::backend::cpu::BRISK_ISA {
namespace {

/// f over `count` floats; the last vector may be partial (values without a batch).
template <class F>
BRISK_INLINE void map(float* out, const float* a, int64_t count, F f) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(out + i, f(load(a + i)));
  if (i < count) store_first(out + i, f(load_first(a + i, count - i)), count - i);
}

template <class F>
BRISK_INLINE void map(float* out, const float* a, const float* b, int64_t count, F f) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(out + i, f(load(a + i), load(b + i)));
  if (i < count) store_first(out + i, f(load_first(a + i, count - i), load_first(b + i, count - i)), count - i);
}

template <class F>
BRISK_INLINE void map(float* out, const float* a, const float* b, const float* c, int64_t count, F f) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(out + i, f(load(a + i), load(b + i), load(c + i)));
  const int64_t rest = count - i;
  if (rest > 0)
    store_first(out + i, f(load_first(a + i, rest), load_first(b + i, rest), load_first(c + i, rest)), rest);
}

BRISK_INLINE Vec huber(Vec d, Vec delta) {
  const Vec size = abs(d);
  return select(size <= delta, set1(0.5f) * d * d, delta * (size - set1(0.5f) * delta));
}

/// dy sign(x); NaN stays NaN.
BRISK_INLINE Vec abs_gradient(Vec dy, Vec x) {
  return select(is_nan(x), x, select(x > zero(), dy, keep(x < zero(), -dy)));
}

/// dy where x is inside the bounds; NaN stays NaN.
BRISK_INLINE Vec clamp_gradient(Vec dy, Vec x, Vec low, Vec high) {
  return select(is_nan(x), x, keep((low < x) & (x < high), dy));
}

/// dy for the operand that was taken, half of it for each of two equal ones.
BRISK_INLINE Vec choice_gradient(Vec dy, Mask other_taken, Mask same) {
  return keep(~other_taken, select(same, dy * set1(0.5f), dy));
}

/// Calls f with the comparison as a function of two vectors.
template <class F>
BRISK_INLINE void with_relation(Relation relation, F f) {
  switch (relation) {
    case Relation::less:
      return f([](Vec x, Vec y) { return x < y; });
    case Relation::less_equal:
      return f([](Vec x, Vec y) { return x <= y; });
    case Relation::greater:
      return f([](Vec x, Vec y) { return x > y; });
    case Relation::greater_equal:
      return f([](Vec x, Vec y) { return x >= y; });
    case Relation::equal:
      return f([](Vec x, Vec y) { return x == y; });
    case Relation::not_equal:
      return f([](Vec x, Vec y) { return ~(x == y); });
  }
}

/// Keeps elements of the tile whose word is at least the threshold, scaled. `at` is the tile's place in the output.
void dropout(const TileProgram& program, const TileStep& step, const RunState& run, int64_t at, const float* x,
             float* y, int64_t count) {
  const Vec factor = set1(step.constant);
  int64_t block = at / kLanes / program.elements;
  int64_t element = at / kLanes % program.elements;
  for (int64_t i = 0; i < count;) {
    const int64_t sample = run.first_sample + block * kLanes;
    Ints word[4] = {set1_int(static_cast<int32_t>(run.attempt)), set1_int(static_cast<int32_t>(run.attempt >> 32)),
                    set1_int(static_cast<int32_t>(sample)) + lane_numbers(),
                    set1_int(static_cast<int32_t>(element / 4))};
    philox(step.key, word);
    Vec scale[4];
    BRISK_UNROLL for (int k = 0; k < 4; ++k) scale[k] = keep(at_least(word[k], step.threshold), factor);
    const int64_t end = std::min({count, i + (4 - element % 4) * kLanes, i + (program.elements - element) * kLanes});
    for (; i < end; i += kLanes, ++element) {
      const Vec kept = scale[element % 4];
      store(y + i, keep(kept > zero(), load(x + i) * kept));
    }
    if (element < program.elements) continue;
    element = 0;
    ++block;
  }
}

/// Functions of one value; false: it is none.
bool run_function(const TileStep& step, const float* a, float* out, int64_t count) {
  const Vec c = set1(step.constant), high = set1(step.high);
  const auto apply = [&](auto f) {
    map(out, a, count, f);
    return true;
  };
  switch (step.op) {
    case Micro::relu:
      return apply([](Vec x) { return relu(x); });
    case Micro::leaky_relu:
      return apply([c](Vec x) { return select(x > zero(), x, c * x); });
    case Micro::elu:
      return apply([c](Vec x) { return select(x > zero(), x, c * exponential(x).minus_one()); });
    case Micro::gelu:
      return apply([](Vec x) { return gelu(x); });
    case Micro::gelu_tanh:
      return apply([](Vec x) { return gelu_tanh(x); });
    case Micro::silu:
      return apply([](Vec x) { return silu(x); });
    case Micro::softplus:
      return apply([](Vec x) { return softplus(x); });
    case Micro::tanh:
      return apply([](Vec x) { return tanh(x); });
    case Micro::sigmoid:
      return apply([](Vec x) { return sigmoid(x); });
    case Micro::exp:
      return apply([](Vec x) { return exp(x); });
    case Micro::log:
      return apply([](Vec x) { return log(x); });
    case Micro::sqrt:
      return apply([](Vec x) { return sqrt(x); });
    case Micro::abs:
      return apply([](Vec x) { return abs(x); });
    case Micro::clamp:
      return apply([c, high](Vec x) { return min(high, max(c, x)); });
    case Micro::reciprocal:
      return apply([c](Vec x) { return c / x; });
    case Micro::scale:
      return apply([c](Vec x) { return x * c; });
    case Micro::add_scalar:
      return apply([c](Vec x) { return x + c; });
    case Micro::huber:
      return apply([c](Vec d) { return huber(d, c); });
    default:
      return false;
  }
}

/// Gradients of functions of one value: of dy and the value that the table keeps; false: it is none.
bool run_gradient(const TileStep& step, const float* dy, const float* value, float* out, int64_t count) {
  const Vec c = set1(step.constant), high = set1(step.high);
  const auto apply = [&](auto f) {
    map(out, dy, value, count, f);
    return true;
  };
  switch (step.op) {
    case Micro::relu_gradient:
      return apply([](Vec g, Vec y) { return relu_gradient(g, y); });
    case Micro::leaky_relu_gradient:
      return apply([c](Vec g, Vec y) { return select(is_nan(y), y, select(y > zero(), g, c * g)); });
    case Micro::elu_gradient:
      return apply([c](Vec g, Vec y) { return select(y > zero(), g, g * (y + c)); });
    case Micro::gelu_gradient:
      return apply([](Vec g, Vec x) { return g * gelu_gradient(x); });
    case Micro::gelu_tanh_gradient:
      return apply([](Vec g, Vec x) { return g * gelu_tanh_gradient(x); });
    case Micro::silu_gradient:
      return apply([](Vec g, Vec x) { return g * silu_gradient(x); });
    case Micro::tanh_gradient:
      return apply([](Vec g, Vec y) { return g * fnma(y, y, set1(1.0f)); });
    case Micro::sigmoid_gradient:
      return apply([](Vec g, Vec y) { return g * (y * (set1(1.0f) - y)); });
    case Micro::abs_gradient:
      return apply([](Vec g, Vec x) { return abs_gradient(g, x); });
    case Micro::clamp_gradient:
      return apply([c, high](Vec g, Vec x) { return clamp_gradient(g, x, c, high); });
    case Micro::huber_gradient:
      return apply([c](Vec g, Vec d) { return g * max(-c, min(c, d)); });
    default:
      return false;
  }
}

void run_step(const TileProgram& program, const TileStep& step, const RunState* run, int64_t at,
              float* const* registers, int64_t count) {
  const float* a = registers[step.a];
  const float* b = registers[step.b];
  const float* c = registers[step.c];
  float* out = registers[step.out];
  const Vec constant = set1(step.constant), one = set1(1.0f);
  switch (step.op) {
    case Micro::copy:
      if (out != a) std::memcpy(out, a, static_cast<size_t>(count) * sizeof(float));
      return;
    case Micro::add:
      return map(out, a, b, count, [](Vec x, Vec y) { return x + y; });
    case Micro::sub:
      return map(out, a, b, count, [](Vec x, Vec y) { return x - y; });
    case Micro::mul:
      return map(out, a, b, count, [](Vec x, Vec y) { return x * y; });
    case Micro::div:
      return map(out, a, b, count, [](Vec x, Vec y) { return x / y; });
    case Micro::minimum:  // of two with a NaN, min and max give the second
      return map(out, a, b, count, [](Vec x, Vec y) { return select(is_nan(x), x, min(x, y)); });
    case Micro::maximum:
      return map(out, a, b, count, [](Vec x, Vec y) { return select(is_nan(x), x, max(x, y)); });
    case Micro::minimum_gradient:
      return map(out, a, b, c, count, [](Vec g, Vec x, Vec y) { return choice_gradient(g, y < x, x == y); });
    case Micro::maximum_gradient:
      return map(out, a, b, c, count, [](Vec g, Vec x, Vec y) { return choice_gradient(g, y > x, x == y); });
    case Micro::pow:
      return Power(step.exponent).apply(a, out, count);
    case Micro::compare:
      return with_relation(step.relation, [&](auto holds) {
        map(out, a, b, count, [=](Vec x, Vec y) { return keep(holds(x, y), one); });
      });
    case Micro::compare_scalar:
      return with_relation(
          step.relation, [&](auto holds) { map(out, a, count, [=](Vec x) { return keep(holds(x, constant), one); }); });
    case Micro::where:
      return map(out, a, b, c, count, [](Vec holds, Vec x, Vec y) { return select(holds == zero(), y, x); });
    case Micro::where_gradient:
      if (step.chosen) return map(out, a, b, count, [](Vec holds, Vec g) { return keep(~(holds == zero()), g); });
      return map(out, a, b, count, [](Vec holds, Vec g) { return keep(holds == zero(), g); });
    case Micro::dropout:
      return dropout(program, step, *run, at, a, out, count);
    default:
      if (!run_function(step, a, out, count)) run_gradient(step, a, b, out, count);
  }
}

/// Where element `e` lies in an operand, and how many elements from it on are one step of the last dimension apart.
struct Place {
  int64_t offset = 0;
  int64_t run = 0;
};
Place find(const TileProgram& program, const TileSource& source, int64_t e) {
  Place place;
  place.run = program.dims.back() - e % program.dims.back();
  for (size_t i = program.dims.size(); i-- > 0;) {
    place.offset += e % program.dims[i] * source.strides[i];
    e /= program.dims[i];
  }
  return place;
}

void fill(float* to, float value, int64_t count) {
  const Vec v = set1(value);
  for (int64_t i = 0; i < count; i += kLanes) store(to + i, v);  // buffers are whole vectors
}

/// A broadcast operand of a batched output: vectors [first, first + count) of it.
void expand_batched(const TileProgram& program, const TileSource& source, const float* from, float* to, int64_t first,
                    int64_t count) {
  const bool in_lanes = source.kind == TileSource::lanes;
  const int64_t stride = source.strides.back();
  for (int64_t done = 0; done < count;) {
    const int64_t block = (first + done) / program.elements;
    const Place place = find(program, source, (first + done) % program.elements);
    const int64_t run = std::min(place.run, count - done);
    float* out = to + done * kLanes;
    if (in_lanes) {
      const float* in = from + (block * source.elements + place.offset) * kLanes;
      for (int64_t i = 0; i < run; ++i) store(out + i * kLanes, load(in + i * stride * kLanes));
    } else if (stride == 0) {
      fill(out, from[place.offset], run * kLanes);
    } else {
      for (int64_t i = 0; i < run; ++i) store(out + i * kLanes, set1(from[place.offset + i * stride]));
    }
    done += run;
  }
}

/// A broadcast operand of an output without a batch: elements [first, first + count) of it.
void expand_plain(const TileProgram& program, const TileSource& source, const float* from, float* to, int64_t first,
                  int64_t count) {
  const int64_t stride = source.strides.back();
  for (int64_t done = 0; done < count;) {
    const Place place = find(program, source, first + done);
    const int64_t run = std::min(place.run, count - done);
    for (int64_t i = 0; i < run; ++i) to[done + i] = from[place.offset + i * stride];
    done += run;
  }
}

}  // namespace

void run_tiles(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& program = *static_cast<const TileProgram*>(parameters);
  const size_t sources = program.sources.size(), outputs = program.staged.size();
  auto** registers = reinterpret_cast<float**>(operands.scratch);
  auto* buffer = reinterpret_cast<float*>(operands.scratch + program.buffers_at);
  for (int32_t i = 0; i < program.temporaries; ++i, buffer += kTile) {
    registers[sources + outputs + static_cast<size_t>(i)] = buffer;
  }
  for (size_t i = 0; i < sources; ++i) {
    const TileSource& source = program.sources[i];
    if (source.kind == TileSource::direct) continue;
    if (source.kind == TileSource::constant) fill(buffer, operands.input<float>(static_cast<int>(i))[0], kTile);
    registers[i] = buffer;
    buffer += kTile;
  }
  const int64_t end = std::min(last * kUnit, program.total);
  for (int64_t at = first * kUnit; at < end; at += kTile) {
    const int64_t count = std::min(kTile, end - at);
    for (size_t i = 0; i < sources; ++i) {
      const TileSource& source = program.sources[i];
      const float* from = operands.input<float>(static_cast<int>(i));
      if (source.kind == TileSource::direct) {
        registers[i] = const_cast<float*>(from + at);
      } else if (source.kind == TileSource::plain) {
        expand_plain(program, source, from, registers[i], at, count);
      } else if (source.kind != TileSource::constant) {
        expand_batched(program, source, from, registers[i], at / kLanes, count / kLanes);
      }
    }
    for (size_t i = 0; i < outputs; ++i) registers[sources + i] = operands.output<float>(static_cast<int>(i)) + at;
    for (const TileStep& step : program.steps) run_step(program, step, operands.run, at, registers, count);
    for (size_t i = 0; i < outputs; ++i) {
      if (program.staged[i] < 0) continue;
      std::memcpy(registers[sources + i], registers[program.staged[i]], static_cast<size_t>(count) * sizeof(float));
    }
  }
}

}  // namespace brisk::backend::cpu::BRISK_ISA
