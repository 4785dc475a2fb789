// Digits drawn by the library: strokes as polylines, distorted at random, rasterized with soft edges.
#include <algorithm>
#include <array>
#include <cmath>

#include "brisk/data.h"
#include "core/philox.h"
#include "core/text.h"

namespace brisk::data {
namespace {

constexpr int kSide = 28;
constexpr double kPi = 3.141592653589793;

struct Point {
  float x = 0;  // both 0..1, y downwards
  float y = 0;
};
using Stroke = std::vector<Point>;
using Glyph = std::vector<Stroke>;

// Part of an ellipse; degrees go clockwise from the right, as y points down.
Stroke arc(double center_x, double center_y, double radius_x, double radius_y, double from, double to) {
  const int pieces = std::max(3, static_cast<int>(std::abs(to - from) / 24));
  Stroke out;
  for (int i = 0; i <= pieces; ++i) {
    const double angle = (from + (to - from) * i / pieces) * kPi / 180;
    out.push_back({static_cast<float>(center_x + radius_x * std::cos(angle)),
                   static_cast<float>(center_y + radius_y * std::sin(angle))});
  }
  return out;
}

Stroke joined(Stroke a, const Stroke& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Two ways to write each digit.
using Alphabet = std::array<std::array<Glyph, 2>, 10>;

Alphabet make_alphabet() {
  const Stroke circle = arc(.5, .5, .28, .42, 0, 360);
  const Stroke two = joined(arc(.5, .31, .27, .23, 195, 375), {{.2f, .92f}, {.82f, .92f}});
  const Stroke two_looped =
      joined(arc(.48, .3, .26, .22, 185, 400), {{.3f, .84f}, {.24f, .92f}, {.45f, .82f}, {.84f, .9f}});
  const Stroke three = joined(arc(.47, .29, .25, .2, 205, 440), arc(.47, .7, .29, .22, 280, 510));
  const Stroke three_flat = joined({{.2f, .1f}, {.76f, .1f}, {.45f, .42f}}, arc(.47, .67, .29, .25, 285, 515));
  const Stroke five_bowl = joined({{.3f, .1f}, {.27f, .46f}}, arc(.46, .66, .3, .26, 225, 510));
  const Stroke six = joined({{.68f, .08f}, {.42f, .28f}, {.27f, .52f}}, arc(.51, .68, .26, .24, 200, 560));
  const Stroke six_round = joined(arc(.56, .5, .34, .42, 300, 180), arc(.49, .69, .26, .23, 180, 540));
  const Stroke nine = joined(arc(.5, .31, .26, .23, 0, 360), {{.74f, .55f}, {.58f, .93f}});
  const Stroke nine_curled = joined(arc(.5, .31, .25, .22, 0, 360), arc(.43, .55, .33, .37, -20, 130));
  return {{
      {{{circle}, {arc(.5, .5, .36, .36, -80, 290)}}},
      {{{{{.5f, .07f}, {.5f, .93f}}}, {{{.32f, .28f}, {.54f, .08f}, {.54f, .92f}}, {{.34f, .92f}, {.74f, .92f}}}}},
      {{{two}, {two_looped}}},
      {{{three}, {three_flat}}},
      {{{{{.6f, .07f}, {.16f, .63f}, {.86f, .63f}}, {{.64f, .36f}, {.64f, .94f}}},
        {{{.24f, .08f}, {.22f, .5f}, {.76f, .5f}}, {{.74f, .08f}, {.7f, .94f}}}}},
      {{{five_bowl, {{.3f, .1f}, {.78f, .1f}}}, {joined({{.8f, .08f}}, five_bowl)}}},
      {{{six}, {six_round}}},
      {{{{{.18f, .1f}, {.82f, .1f}, {.42f, .93f}}},
        {{{.18f, .12f}, {.8f, .12f}, {.46f, .93f}}, {{.36f, .52f}, {.76f, .5f}}}}},
      {{{arc(.5, .28, .21, .19, 0, 360), arc(.5, .7, .27, .22, 0, 360)},
        {joined(arc(.52, .28, .24, .2, 330, 90), arc(.5, .7, .25, .22, 270, 640))}}},
      {{{nine}, {nine_curled}}},
  }};
}

// What one image does to the ideal strokes.
struct Distortion {
  float a, b, c, d;        // linear part, unit square to pixels
  float shift_x, shift_y;  // pixels
  float bend_x, bend_y;    // amplitude of a wave along the other axis, unit square
  float phase_x, phase_y;
  float half_pen;  // pixels
  float ink;       // 0..1

  explicit Distortion(Random& random) {
    const float angle = random.uniform(-0.35f, 0.35f);
    const float cosine = std::cos(angle);
    const float sine = std::sin(angle);
    const float width = random.uniform(10, 20);
    const float height = random.uniform(15, 22);
    const float slant = random.uniform(-0.35f, 0.35f);
    a = cosine * width;
    b = (cosine * slant - sine) * height;
    c = sine * width;
    d = (sine * slant + cosine) * height;
    shift_x = random.uniform(-3, 3);
    shift_y = random.uniform(-3, 3);
    bend_x = random.uniform(-0.07f, 0.07f);
    bend_y = random.uniform(-0.07f, 0.07f);
    phase_x = random.uniform(0, 6.2831853f);
    phase_y = random.uniform(0, 6.2831853f);
    half_pen = random.uniform(0.6f, 1.6f);
    ink = random.uniform(0.65f, 1);
  }

  Point operator()(Point p) const {
    const float x = p.x - 0.5f + bend_x * std::sin(6.0f * p.y + phase_x);
    const float y = p.y - 0.5f + bend_y * std::sin(6.0f * p.x + phase_y);
    return {a * x + b * y + shift_x + kSide / 2.0f, c * x + d * y + shift_y + kSide / 2.0f};
  }
};

using Canvas = std::array<float, kSide * kSide>;

// Raises pixels to the pen's coverage: full inside half_pen, fading to nothing over one pixel.
void draw_line(Point from, Point to, float half_pen, Canvas& canvas) {
  const float reach = half_pen + 0.5f;
  const auto bound = [](float v) { return std::clamp(static_cast<int>(std::floor(v)), 0, kSide - 1); };
  const int left = bound(std::min(from.x, to.x) - reach);
  const int right = bound(std::max(from.x, to.x) + reach);
  const int top = bound(std::min(from.y, to.y) - reach);
  const int bottom = bound(std::max(from.y, to.y) + reach);
  const float dx = to.x - from.x;
  const float dy = to.y - from.y;
  const float length2 = std::max(dx * dx + dy * dy, 1e-12f);
  for (int row = top; row <= bottom; ++row) {
    for (int column = left; column <= right; ++column) {
      const float x = static_cast<float>(column) + 0.5f - from.x;
      const float y = static_cast<float>(row) + 0.5f - from.y;
      const float along = std::clamp((x * dx + y * dy) / length2, 0.0f, 1.0f);
      const float off_x = x - along * dx;
      const float off_y = y - along * dy;
      const float coverage = std::clamp(reach - std::sqrt(off_x * off_x + off_y * off_y), 0.0f, 1.0f);
      float& pixel = canvas[static_cast<size_t>(row * kSide + column)];
      pixel = std::max(pixel, coverage);
    }
  }
}

int64_t draw(const Alphabet& alphabet, Random random, uint8_t* pixels) {
  constexpr float kNoise = 0.12f;
  const int64_t digit = random.integer(10);
  const Glyph& glyph = alphabet[static_cast<size_t>(digit)][random.chance(0.5) ? 1 : 0];
  const Distortion distort(random);
  Canvas canvas = {};
  for (const Stroke& stroke : glyph) {
    for (size_t i = 1; i < stroke.size(); ++i) {
      draw_line(distort(stroke[i - 1]), distort(stroke[i]), distort.half_pen, canvas);
    }
  }
  for (size_t i = 0; i < canvas.size(); ++i) {
    const float value = canvas[i] * distort.ink + random.uniform(-kNoise, kNoise);
    pixels[i] = static_cast<uint8_t>(std::clamp(value, 0.0f, 1.0f) * 255.0f + 0.5f);
  }
  return digit;
}

}  // namespace

InMemoryDataset drawn_digits(int64_t count, uint64_t seed) {
  if (count < 1 || count > INT32_MAX)
    throw Error(ErrorCode::option, cat("drawn_digits.count = ", count), "must be at least 1 and below 2^31");
  const Alphabet alphabet = make_alphabet();
  const uint64_t key = mix(seed, hash_name("drawn_digits"));
  Tensor images({count, 1, kSide, kSide}, DType::u8);
  Tensor labels({count}, DType::i64);
  uint8_t* pixels = images.data<uint8_t>();
  int64_t* label = labels.data<int64_t>();
  for (int64_t i = 0; i < count; ++i) label[i] = draw(alphabet, Random(key, 0, i), pixels + i * kSide * kSide);
  InMemoryDataset out;
  out.add_pixels("input", std::move(images));
  out.add("target", std::move(labels));
  out.set_name("drawn digits");
  return out;
}

}  // namespace brisk::data
