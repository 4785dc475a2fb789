// Elements of the three float types, one at a time and by the 16 bytes that a thread reads at once.
//
//   Pack<T, N>            N elements, aligned to 16 bytes where they are as many
//   load<N>(p), store(p, pack)   p aligned as the pack is
//   to_float(x), from_float<T>(x)   to a narrower type: nearest, ties to even
//   dispatch(dtype, f)    calls f(T()) with the C++ type of f32, f16 or bf16
#pragma once

#include <cstdint>
#include <type_traits>

#include "brisk/tensor.h"
#include "kernels/common/check.h"
#include "kernels/common/cuda.h"

namespace brisk::kernels {

template <class T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack {
  T element[N];
};

template <int N, class T>
__device__ __forceinline__ Pack<T, N> load(const T* from) {
  return *reinterpret_cast<const Pack<T, N>*>(from);
}

template <class T, int N>
__device__ __forceinline__ void store(T* to, const Pack<T, N>& pack) {
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

__host__ __device__ __forceinline__ float to_float(float x) { return x; }
__host__ __device__ __forceinline__ float to_float(__half x) { return __half2float(x); }
__host__ __device__ __forceinline__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class T>
__host__ __device__ __forceinline__ T from_float(float x) {
  if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(x);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __float2bfloat16_rn(x);
  } else {
    static_assert(std::is_same_v<T, float>, "float, __half or __nv_bfloat16");
    return x;
  }
}

/// N elements as floats, from an address that the pack's alignment divides.
template <int N, class T>
__device__ __forceinline__ void load_floats(const T* from, float (&to)[N]) {
  constexpr int kStep = static_cast<int>(16 / sizeof(T)) < N ? static_cast<int>(16 / sizeof(T)) : N;
#pragma unroll
  for (int i = 0; i < N; i += kStep) {
    const Pack<T, kStep> pack = load<kStep>(from + i);
#pragma unroll
    for (int k = 0; k < kStep; ++k) to[i + k] = to_float(pack.element[k]);
  }
}

template <int N, class T>
__device__ __forceinline__ void store_floats(T* to, const float (&from)[N]) {
  constexpr int kStep = static_cast<int>(16 / sizeof(T)) < N ? static_cast<int>(16 / sizeof(T)) : N;
#pragma unroll
  for (int i = 0; i < N; i += kStep) {
    Pack<T, kStep> pack;
#pragma unroll
    for (int k = 0; k < kStep; ++k) pack.element[k] = from_float<T>(from[i + k]);
    store(to + i, pack);
  }
}

/// Calls f with a value of the C++ type of a float dtype. Throws Error [option] for other types, which launchers check
/// before with a better text (check_float).
template <class F>
auto dispatch(DType dtype, F f) {
  switch (dtype) {
    case DType::f32:
      return f(float());
    case DType::f16:
      return f(__half());
    case DType::bf16:
      return f(__nv_bfloat16());
    default:
      throw Error(ErrorCode::option, name(dtype), "the kernel takes f32, f16 and bf16");
  }
}

/// The same for integers too.
template <class F>
void dispatch_any(DType dtype, F f) {
  switch (dtype) {
    case DType::i32:
      return f(int32_t());
    case DType::i64:
      return f(int64_t());
    case DType::u8:
      return f(uint8_t());
    default:
      return dispatch(dtype, f);
  }
}

}  // namespace brisk::kernels
