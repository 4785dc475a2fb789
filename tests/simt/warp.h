// Shuffles and votes. All lanes of the mask take part, from one line of the source.
#pragma once

#include "simt/core.h"
#include "simt/sanitizer.h"

namespace brisk::simt {

template <class T>
struct Shuffle {
  T in;
  T out;
  int from;
};

// A lane that is not there gives garbage, all bits set.
template <class T>
BRISK_SIMT_HARDWARE void exchange(void* const values[32], uint32_t lanes) {
  for (int lane = 0; lane < 32; ++lane) {
    if (!(lanes >> lane & 1)) continue;
    auto* own = static_cast<Shuffle<T>*>(values[lane]);
    if (lanes >> own->from & 1) {
      __builtin_memcpy(&own->out, &static_cast<Shuffle<T>*>(values[own->from])->in, sizeof(T));
    } else {
      __builtin_memset(&own->out, 0xFF, sizeof(T));
    }
  }
}

template <class T>
T shuffle(uint32_t mask, T value, int from, Site site) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8, "CUDA shuffles values of at most 8 bytes");
  static constexpr WarpOperation kOperation{"__shfl_sync", &exchange<T>, false, false};
  Shuffle<T> lane{value, value, from};
  warp_collective(mask, kOperation, &lane, site);
  return lane.out;
}

struct Vote {
  bool in;
  uint32_t out;
};

BRISK_SIMT_HARDWARE inline void count_votes(void* const values[32], uint32_t lanes) {
  uint32_t votes = 0;
  for (int lane = 0; lane < 32; ++lane) {
    if (lanes >> lane & 1 && static_cast<Vote*>(values[lane])->in) votes |= 1u << lane;
  }
  for (int lane = 0; lane < 32; ++lane) {
    if (lanes >> lane & 1) static_cast<Vote*>(values[lane])->out = votes;
  }
}

inline uint32_t vote(uint32_t mask, bool value, Site site) {
  static constexpr WarpOperation kOperation{"__ballot_sync", &count_votes, false, false};
  Vote lane{value, 0};
  warp_collective(mask, kOperation, &lane, site);
  return lane.out;
}

inline int lane() { return static_cast<int>(current_thread->lane); }

}  // namespace brisk::simt

inline void __syncwarp(unsigned mask = ~0u, brisk::simt::Site site = brisk::simt::Site::here()) {
  brisk::simt::warp_collective(mask, brisk::simt::kWarpBarrier, nullptr, site);
}

// Lanes form segments of `width`, a power of two; a source outside the own segment is the lane itself.
template <class T>
inline T __shfl_sync(unsigned mask, T value, int from, int width = 32,
                     brisk::simt::Site site = brisk::simt::Site::here()) {
  const int first = brisk::simt::lane() & ~(width - 1);
  return brisk::simt::shuffle(mask, value, first | (from & (width - 1)), site);
}

template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32,
                         brisk::simt::Site site = brisk::simt::Site::here()) {
  const int lane = brisk::simt::lane(), from = lane ^ bits;
  return brisk::simt::shuffle(mask, value, from > (lane | (width - 1)) ? lane : from, site);
}

template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32,
                          brisk::simt::Site site = brisk::simt::Site::here()) {
  const int lane = brisk::simt::lane(), from = lane + static_cast<int>(distance);
  return brisk::simt::shuffle(mask, value, from > (lane | (width - 1)) ? lane : from, site);
}

template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32,
                        brisk::simt::Site site = brisk::simt::Site::here()) {
  const int lane = brisk::simt::lane(), from = lane - static_cast<int>(distance);
  return brisk::simt::shuffle(mask, value, from < (lane & ~(width - 1)) ? lane : from, site);
}

inline unsigned __ballot_sync(unsigned mask, int value, brisk::simt::Site site = brisk::simt::Site::here()) {
  return brisk::simt::vote(mask, value != 0, site);
}
