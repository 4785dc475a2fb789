// The order of samples.
#include "data/order.h"

#include <cmath>

#include "core/philox.h"
#include "core/text.h"

namespace brisk::data {
namespace {
__extension__ using Wide = unsigned __int128;

// The high word of the product maps 64 random bits evenly to 0 .. range - 1.
uint64_t below(uint64_t range, uint64_t random) { return static_cast<uint64_t>((Wide{random} * range) >> 64); }

// (x + y) mod range, for x and y below range.
uint64_t add(uint64_t x, uint64_t y, uint64_t range) { return x + y < range ? x + y : x + y - range; }
}  // namespace

Order::Order(uint64_t seed, int64_t epoch, int64_t size) : size_(static_cast<uint64_t>(size)) {
  a_ = static_cast<uint64_t>(std::sqrt(static_cast<double>(size_)));
  while (a_ * a_ < size_) ++a_;
  b_ = (size_ + a_ - 1) / a_;
  const uint64_t key = mix(seed, hash_name("order"));
  const uint64_t e = static_cast<uint64_t>(epoch);
  for (uint32_t round = 0; round < kRounds; round += 2) {
    const PhiloxBlock block = philox(key, {static_cast<uint32_t>(e), static_cast<uint32_t>(e >> 32), round, 0});
    keys_[round] = uint64_t{block[0]} << 32 | block[1];
    keys_[round + 1] = uint64_t{block[2]} << 32 | block[3];
  }
}

uint64_t Order::permute(uint64_t x) const {
  uint64_t left = x / b_;
  uint64_t right = x % b_;
  for (size_t round = 0; round < kRounds; round += 2) {
    left = add(left, below(a_, mix(right, keys_[round])), a_);
    right = add(right, below(b_, mix(left, keys_[round + 1])), b_);
  }
  return left * b_ + right;
}

int64_t Order::operator[](int64_t i) const {
  uint64_t x = permute(static_cast<uint64_t>(i));
  while (x >= size_) x = permute(x);
  return static_cast<int64_t>(x);
}

SplitRows split_rows(const SplitOptions& options, int64_t count) {
  // Written so that NaN is refused as well.
  const int64_t first =
      options.first > 0 && options.first < 1 ? std::llround(options.first * static_cast<double>(count)) : 0;
  if (first < 1 || first >= count) {
    throw Error(ErrorCode::option, cat("SplitOptions.first = ", options.first),
                cat("must be above 0 and below 1 and leave samples in both parts of the ", count, " there are"));
  }
  const Order order(mix(options.seed, hash_name("split")), 0, count);
  SplitRows out;
  for (int64_t i = 0; i < count; ++i) (i < first ? out.first : out.second).push_back(order[i]);
  return out;
}

}  // namespace brisk::data
