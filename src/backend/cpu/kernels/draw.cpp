// A lane is a sample; the four words of a block are four of its elements.
#include "backend/cpu/kernels/draw.h"

#include <algorithm>

#include "backend/cpu/kernels/math.h"
#include "backend/cpu/kernels/random.h"

namespace brisk::backend::cpu::BRISK_ISA {
namespace {

/// The words of elements 4 quarter .. 4 quarter + 3 of the samples of a block.
struct Words {
  Ints word[4];

  BRISK_INLINE Words(uint64_t key, const RunState& run, int64_t block, int64_t quarter) {
    word[0] = set1_int(static_cast<int32_t>(run.attempt));
    word[1] = set1_int(static_cast<int32_t>(run.attempt >> 32));
    word[2] = set1_int(static_cast<int32_t>(run.first_sample + block * kLanes)) + lane_numbers();
    word[3] = set1_int(static_cast<int32_t>(quarter));
    philox(key, word);
  }
};

/// The word as an unsigned number, rounded once.
BRISK_INLINE Vec to_float_unsigned(Ints word) {
  return fma(to_float(shift_right<8>(word)), set1(256.0f), to_float(word & set1_int(255)));
}

struct Pair {
  Vec first, second;
};

/// sin and cos of 2 pi word / 2^32: the nearest quarter turn is taken out, Taylor's series does the rest.
BRISK_INLINE Pair sine_and_cosine(Ints word) {
  const Ints quarter = shift_right<30>(word + set1_int(1 << 29));
  const Vec angle = to_float(word - shift_left<30>(quarter)) * set1(0x1.921fb6p-30f);  // 2 pi / 2^32
  const Vec square = angle * angle;
  Vec s = fma(set1(1.0f / 362880), square, set1(-1.0f / 5040));
  s = fma(s, square, set1(1.0f / 120));
  s = fma(s, square, set1(-1.0f / 6));
  const Vec sine = fma(angle * square, s, angle);
  Vec c = fma(set1(-1.0f / 3628800), square, set1(1.0f / 40320));
  c = fma(c, square, set1(-1.0f / 720));
  c = fma(c, square, set1(1.0f / 24));
  const Vec cosine = fma(square * square, c, fma(square, set1(-0.5f), set1(1.0f)));
  const Mask odd = (quarter & set1_int(1)) == set1_int(1);
  const Ints sine_sign = shift_left<30>(quarter & set1_int(2));
  const Ints cosine_sign = shift_left<30>((quarter + set1_int(1)) & set1_int(2));
  return {from_bits(bits(select(odd, cosine, sine)) ^ sine_sign),
          from_bits(bits(select(odd, sine, cosine)) ^ cosine_sign)};
}

/// Two standard normal values from two words (Box and Muller, 1958).
BRISK_INLINE Pair normal(Ints word0, Ints word1) {
  const Vec unit = (to_float_unsigned(word0) + set1(0.5f)) * set1(0x1p-32f);
  const Vec radius = sqrt(max(set1(-2.0f) * log(unit), zero()));
  const Pair turn = sine_and_cosine(word1);
  return {radius * turn.second, radius * turn.first};
}

/// Calls f(words, values of four elements) and stores what it makes.
template <class F>
BRISK_INLINE void draw(const Draw& d, const Operands& operands, int64_t first, int64_t last, F f) {
  for (int64_t unit = first; unit < last; ++unit) {
    const int64_t block = unit / d.units_per_block;
    const int64_t begin = unit % d.units_per_block * d.per_unit;
    const int64_t end = std::min(d.elements, begin + d.per_unit);
    float* out = operands.output<float>(0) + block * d.elements * kLanes;
    for (int64_t e = begin; e < end; e += 4) {
      const Words words(d.key, *operands.run, block, e / 4);
      Vec value[4];
      f(words.word, value);
      const int64_t count = std::min<int64_t>(4, end - e);
      for (int64_t i = 0; i < count; ++i) store(out + (e + i) * kLanes, value[i]);
    }
  }
}

}  // namespace

void draw_normal(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& d = *static_cast<const Draw*>(parameters);
  const Vec deviation = set1(d.factor), mean = set1(d.offset);
  draw(d, operands, first, last, [=](const Ints(&word)[4], Vec(&value)[4]) {
    BRISK_UNROLL for (int i = 0; i < 4; i += 2) {
      const Pair pair = normal(word[i], word[i + 1]);
      value[i] = fma(pair.first, deviation, mean);
      value[i + 1] = fma(pair.second, deviation, mean);
    }
  });
}

void draw_uniform(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& d = *static_cast<const Draw*>(parameters);
  const Vec width = set1(d.factor), low = set1(d.offset), most = set1(d.most);
  draw(d, operands, first, last, [=](const Ints(&word)[4], Vec(&value)[4]) {
    BRISK_UNROLL for (int i = 0; i < 4; ++i) {
      value[i] = min(fma(to_float(shift_right<8>(word[i])) * set1(0x1p-24f), width, low), most);
    }
  });
}

void drop_samples(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& d = *static_cast<const SampleDrop*>(parameters);
  for (int64_t unit = first; unit < last; ++unit) {
    const int64_t line = unit / d.units_per_row, row = line % d.rows;
    const Words words(d.key, *operands.run, line / d.rows, row / 4);
    const Mask stays = at_least(words.word[row % 4], d.threshold);
    const Vec factor = set1(d.factor);
    const int64_t begin = unit % d.units_per_row * d.per_unit;
    const int64_t end = std::min(d.elements, begin + d.per_unit);
    const float* x = operands.input<float>(0) + line * d.elements * kLanes;
    float* y = operands.output<float>(0) + line * d.elements * kLanes;
    for (int64_t i = begin * kLanes; i < end * kLanes; i += kLanes) store(y + i, keep(stays, load(x + i) * factor));
  }
}

}  // namespace brisk::backend::cpu::BRISK_ISA
