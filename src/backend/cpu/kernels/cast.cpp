// One loop for each pair of types, which the compiler turns into vectors; 16-bit floats in vectors of our own.
#include "backend/cpu/kernels/cast.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backend/cpu/kernels/vector.h"

namespace brisk::backend::cpu::BRISK_ISA {
namespace {

/// Integers keep their low bits, as C++ converts. A float is cut towards 0 and limited to the range; NaN becomes 0.
template <class To, class From>
To convert(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr auto low = static_cast<From>(std::numeric_limits<To>::min());
    constexpr auto high = static_cast<From>(std::numeric_limits<To>::max());  // rounded up where it must be
    if (x != x) return 0;
    if (x <= low) return std::numeric_limits<To>::min();
    if (x >= high) return std::numeric_limits<To>::max();
  }
  return static_cast<To>(x);
}

/// f(vector of From, vector of To) over all elements; a rest goes through memory of a whole vector.
template <class From, class To, class F>
BRISK_INLINE void by_vectors(const From* from, To* to, int64_t count, F f) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) f(from + i, to + i);
  if (i == count) return;
  From rest[kLanes] = {};
  To made[kLanes];
  std::memcpy(rest, from + i, static_cast<size_t>(count - i) * sizeof(From));
  f(rest, made);
  std::memcpy(to + i, made, static_cast<size_t>(count - i) * sizeof(To));
}

bool has_16_bits(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

void narrow(DType to, const float* in, uint16_t* out, int64_t count) {
  if (to == DType::f16) {
    by_vectors(in, out, count, [](const float* x, uint16_t* y) { store_f16(y, load(x)); });
  } else {
    by_vectors(in, out, count, [](const float* x, uint16_t* y) { store_bf16(y, load(x)); });
  }
}

void widen(DType from, const uint16_t* in, float* out, int64_t count) {
  if (from == DType::f16) {
    by_vectors(in, out, count, [](const uint16_t* x, float* y) { store(y, load_f16(x)); });
  } else {
    by_vectors(in, out, count, [](const uint16_t* x, float* y) { store(y, load_bf16(x)); });
  }
}

/// Calls f with a value of the C++ type.
template <class F>
void with_type(DType dtype, F f) {
  if (dtype == DType::f32) return f(float{});
  if (dtype == DType::i32) return f(int32_t{});
  if (dtype == DType::i64) return f(int64_t{});
  f(uint8_t{});
}

}  // namespace

void cast_elements(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& cast = *static_cast<const Cast*>(parameters);
  const int64_t begin = first * cast.unit, end = std::min(last * cast.unit, cast.count);
  if (has_16_bits(cast.to))
    return narrow(cast.to, operands.input<float>(0) + begin, operands.output<uint16_t>(0) + begin, end - begin);
  if (has_16_bits(cast.from))
    return widen(cast.from, operands.input<uint16_t>(0) + begin, operands.output<float>(0) + begin, end - begin);
  with_type(cast.from, [&]<class From>(From) {
    with_type(cast.to, [&]<class To>(To) {
      std::transform(operands.input<From>(0) + begin, operands.input<From>(0) + end, operands.output<To>(0) + begin,
                     [](From x) { return convert<To>(x); });
    });
  });
}

}  // namespace brisk::backend::cpu::BRISK_ISA
