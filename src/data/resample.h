// A part of an image brought to another size with a triangle filter, which averages where it shrinks.
#pragma once

#include <cstdint>
#include <vector>

#include "brisk/tensor.h"
#include "data/codec.h"

namespace brisk::data {

/// The lines of 0 .. size - 1 that resampling [start, start + length) to `wanted` lines reads, and one more on each
/// side.
Extent needed(double start, double length, int64_t wanted, int64_t size);

struct ResampleOptions {
  bool channels_first = false;
  bool mirrored = false;
};

/// Keeps its memory from image to image. One thread at a time.
class Resampler {
 public:
  /// region: in the pixels of the reduced image. out: [height, width, 3] or [3, height, width]; u8 (rounded) or f32 in
  /// [0, 1]. Pixels beyond the region's edge take part where the filter reaches them.
  void run(const Pixels& from, const Region& region, const ResampleOptions& options, View out);

  /// The lines that make up each line of the result: `count` of them from `first[i]` on, with weights from i * count
  /// on.
  struct Taps {
    int64_t count = 0;
    std::vector<int64_t> first;
    std::vector<float> weights;
    void set(double start, double length, int64_t wanted, const Extent& extent, bool mirrored);
  };

 private:
  Taps across_;
  Taps down_;
  std::vector<float> row_;  // one row of the result at the source's width
};

}  // namespace brisk::data
