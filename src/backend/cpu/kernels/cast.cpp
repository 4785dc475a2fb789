// One loop for each pair of types, which the compiler turns into vectors.
#include "backend/cpu/kernels/cast.h"

#include <algorithm>
#include <limits>
#include <type_traits>

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
  with_type(cast.from, [&]<class From>(From) {
    with_type(cast.to, [&]<class To>(To) {
      std::transform(operands.input<From>(0) + begin, operands.input<From>(0) + end, operands.output<To>(0) + begin,
                     [](From x) { return convert<To>(x); });
    });
  });
}

}  // namespace brisk::backend::cpu::BRISK_ISA
