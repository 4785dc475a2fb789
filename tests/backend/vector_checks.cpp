// The vector type's operations against plain loops over their lanes.
#include "backend/vector_checks.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "backend/cpu/kernels/vector.h"

namespace brisk::test::BRISK_ISA {
namespace {

using namespace brisk::backend::cpu::BRISK_ISA;

constexpr float kNaN = __builtin_nanf("");
constexpr float kInfinity = __builtin_inff();

struct Lanes {
  alignas(64) float at[kLanes];
};
struct IntLanes {
  alignas(64) int32_t at[kLanes];
};

Lanes lanes(Vec a) {
  Lanes out;
  store(out.at, a);
  return out;
}

IntLanes lanes(Ints a) {
  IntLanes out;
  store(out.at, a);
  return out;
}

/// first, first + step, ... with specials at the front when asked.
Vec sequence(float first, float step, bool special = false) {
  Lanes out;
  for (int i = 0; i < kLanes; ++i) out.at[i] = first + step * static_cast<float>(i);
  if (special) out.at[0] = kNaN, out.at[1] = kInfinity, out.at[2] = -kInfinity, out.at[3] = -0.0f;
  return load(out.at);
}

bool same(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (a != a && b != b); }

template <class Expected>
bool all(Vec a, const Expected& expected) {
  const Lanes got = lanes(a);
  for (int i = 0; i < kLanes; ++i) {
    if (!same(got.at[i], expected(i))) return false;
  }
  return true;
}

template <class Expected>
bool all(Mask a, const Expected& expected) {
  for (int i = 0; i < kLanes; ++i) {
    if (((lane_bits(a) >> i & 1) != 0) != expected(i)) return false;
  }
  return true;
}

const char* arithmetic() {
  const Vec a = sequence(-3.3f, 0.7f, true), b = sequence(1.1f, 0.3f), c = sequence(0.01f, -5);
  const Lanes x = lanes(a), y = lanes(b), z = lanes(c);
  if (!all(a + b, [&](int i) { return x.at[i] + y.at[i]; })) return "a + b";
  if (!all(a - b, [&](int i) { return x.at[i] - y.at[i]; })) return "a - b";
  if (!all(a * b, [&](int i) { return x.at[i] * y.at[i]; })) return "a * b";
  if (!all(a / b, [&](int i) { return x.at[i] / y.at[i]; })) return "a / b";
  if (!all(fma(a, b, c), [&](int i) { return std::fma(x.at[i], y.at[i], z.at[i]); })) return "fma";
  if (!all(fnma(a, b, c), [&](int i) { return std::fma(-x.at[i], y.at[i], z.at[i]); })) return "fnma";
  if (!all(max(b, a), [&](int i) { return y.at[i] > x.at[i] ? y.at[i] : x.at[i]; })) return "max gives its second";
  if (!all(min(b, a), [&](int i) { return y.at[i] < x.at[i] ? y.at[i] : x.at[i]; })) return "min gives its second";
  if (!all(relu(a), [&](int i) { return x.at[i] != x.at[i] || x.at[i] > 0 ? x.at[i] : x.at[i] == 0 ? -0.0f : 0.0f; }))
    return "relu";
  if (!all(sqrt(b), [&](int i) { return std::sqrt(y.at[i]); })) return "sqrt";
  if (!all(round(sequence(-2.5f, 0.5f)), [](int i) { return std::nearbyint(-2.5f + 0.5f * static_cast<float>(i)); }))
    return "round";
  if (!all(abs(a), [&](int i) { return std::fabs(x.at[i]); })) return "abs";
  if (!all(-a, [&](int i) { return -x.at[i]; })) return "negation";
  return "";
}

const char* comparison() {
  const Vec a = sequence(-2, 1, true), b = set1(3);
  const Lanes x = lanes(a);
  if (!all(a < b, [&](int i) { return x.at[i] < 3; })) return "<";
  if (!all(a <= b, [&](int i) { return x.at[i] <= 3; })) return "<=";
  if (!all(a > b, [&](int i) { return x.at[i] > 3; })) return ">";
  if (!all(a >= b, [&](int i) { return x.at[i] >= 3; })) return ">=";
  if (!all(a == b, [&](int i) { return x.at[i] == 3; })) return "==";
  if (!all(is_nan(a), [](int i) { return i == 0; })) return "is_nan";
  if (!all(~(a < b), [&](int i) { return !(x.at[i] < 3); })) return "~";
  if (!all((a < b) & (a > set1(0)), [&](int i) { return x.at[i] < 3 && x.at[i] > 0; })) return "&";
  if (!all((a > b) | is_nan(a), [&](int i) { return x.at[i] > 3 || i == 0; })) return "|";
  if (!any(is_nan(a)) || any(is_nan(b))) return "any";
  if (!all(select(a < b, a, b), [&](int i) { return x.at[i] < 3 ? x.at[i] : 3; })) return "select";
  if (!all(keep(~is_nan(a), a), [&](int i) { return i == 0 ? 0 : x.at[i]; })) return "keep";
  return "";
}

const char* memory() {
  float guarded[3 * kLanes];
  for (int count = 0; count <= kLanes; ++count) {
    for (int i = 0; i < 3 * kLanes; ++i) guarded[i] = static_cast<float>(i);
    if (!all(load_first(guarded + 1, count), [&](int i) { return i < count ? static_cast<float>(i + 1) : 0; }))
      return "load_first";
    if (!all(load_whole(guarded + 1, first_lanes(count)),
             [&](int i) { return i < count ? static_cast<float>(i + 1) : 0; }))
      return "load_whole";
    store_first(guarded + kLanes, set1(-1), count);
    for (int i = 0; i < 3 * kLanes; ++i) {
      const bool inside = i >= kLanes && i < kLanes + count;
      if (guarded[i] != (inside ? -1 : static_cast<float>(i))) return "store_first";
    }
  }
  if (!all(first_lanes(-5), [](int) { return false; }) || !all(first_lanes(99), [](int) { return true; }))
    return "first_lanes clamps";
  if (!all(valid_lanes(2 * kLanes + 3, 2), [](int i) { return i < 3; })) return "valid_lanes of a tail";
  if (!all(valid_lanes(2 * kLanes + 3, 1), [](int) { return true; })) return "valid_lanes of a full block";
  return "";
}

const char* integers() {
  const Ints a = lane_numbers() * set1_int(-1640531527) + set1_int(7), b = set1_int(-766435501);
  const IntLanes x = lanes(a), high = lanes(multiply_high(a, b)), low = lanes(a * b);
  const IntLanes left = lanes(shift_left<5>(a)), right = lanes(shift_right<5>(a)),
                 sign = lanes(shift_right_signed<5>(a));
  for (int i = 0; i < kLanes; ++i) {
    const auto u = static_cast<uint32_t>(x.at[i]);
    const uint64_t product = uint64_t{u} * static_cast<uint32_t>(-766435501);
    if (u != static_cast<uint32_t>(i) * static_cast<uint32_t>(-1640531527) + 7) return "lane_numbers, *, +";
    if (static_cast<uint32_t>(high.at[i]) != static_cast<uint32_t>(product >> 32)) return "multiply_high";
    if (static_cast<uint32_t>(low.at[i]) != static_cast<uint32_t>(product)) return "integer *";
    if (static_cast<uint32_t>(left.at[i]) != u << 5) return "shift_left";
    if (static_cast<uint32_t>(right.at[i]) != u >> 5) return "shift_right";
    if (sign.at[i] != x.at[i] >> 5) return "shift_right_signed";
  }
  if (!all(to_float(a), [&](int i) { return static_cast<float>(x.at[i]); })) return "to_float";
  const IntLanes nearest = lanes(to_ints(sequence(-2.5f, 0.5f))), cut = lanes(truncate(sequence(-2.5f, 0.5f)));
  for (int i = 0; i < kLanes; ++i) {
    const float value = -2.5f + 0.5f * static_cast<float>(i);
    if (nearest.at[i] != static_cast<int32_t>(std::nearbyint(value))) return "to_ints";
    if (cut.at[i] != static_cast<int32_t>(value)) return "truncate";
  }
  return "";
}

const char* across() {
  Vec rows[kLanes];
  for (int i = 0; i < kLanes; ++i) rows[i] = sequence(static_cast<float>(100 * i), 1);
  float four[4];
  store4(four, sum4(rows[0], rows[1], rows[2], rows[3]));
  for (int i = 0; i < 4; ++i) {
    const auto expected = static_cast<float>(100 * i * kLanes + kLanes * (kLanes - 1) / 2);
    if (four[i] != expected || sum(rows[i]) != expected) return "sum4, sum";
  }
  if (maximum(sequence(5, -1)) != 5 || !std::isnan(maximum(sequence(0, 1, true)))) return "maximum";
  transpose(rows);
  for (int i = 0; i < kLanes; ++i) {
    if (!all(rows[i], [i](int j) { return static_cast<float>(100 * j + i); })) return "transpose";
  }
  return "";
}

constexpr VectorCheck kChecks[] = {arithmetic, comparison, memory, integers, across};

}  // namespace

VectorCheck vector_check(int i) {
  return i < static_cast<int>(sizeof kChecks / sizeof kChecks[0]) ? kChecks[i] : nullptr;
}

}  // namespace brisk::test::BRISK_ISA
