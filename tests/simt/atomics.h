// Atomics on integers. Those of floats do not compile: their sums depend on the order of the threads. They are relaxed,
// as on a device: what is to be seen with them needs a __threadfence.
#pragma once

#include <cstdint>
#include <type_traits>

#include "simt/core.h"
#include "simt/touched_bytes.h"

namespace brisk::simt {

/// Replaces *address by update(*address); returns the old value.
template <class T, class Update>
T update_atomically(T* address, Update update) {
  static_assert(std::is_integral_v<T>, "kernels use atomics on integers only");
  if (reinterpret_cast<uintptr_t>(address) % sizeof(T))
    fail("misaligned address of an atomic: %p", static_cast<void*>(address));
  trace_update(address, sizeof(T));
  T old = __atomic_load_n(address, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(address, &old, update(old), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return old;
}

}  // namespace brisk::simt

template <class T>
inline T atomicAdd(T* address, std::type_identity_t<T> value) {
  return brisk::simt::update_atomically(address, [=](T old) { return static_cast<T>(old + value); });
}
template <class T>
inline T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return brisk::simt::update_atomically(address, [=](T old) { return old == expected ? value : old; });
}
inline unsigned atomicInc(unsigned* address, unsigned last) {
  return brisk::simt::update_atomically(address, [=](unsigned old) { return old >= last ? 0u : old + 1; });
}
