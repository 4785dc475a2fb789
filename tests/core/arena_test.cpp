// Arenas: aligned zeros of exactly the size asked for, refused by arithmetic when there is not enough.
#include "core/arena.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "brisk/error.h"
#include "core/machine.h"

namespace brisk {
namespace {

TEST(Arena, HoldsExactlyTheBytesAskedForAsZeros) {
  for (const int64_t bytes :
       {int64_t{1}, int64_t{100}, Arena::kMappedFrom - 1, Arena::kMappedFrom, int64_t{5'000'001}}) {
    const Arena arena(bytes);
    EXPECT_EQ(arena.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(arena.data()) % Arena::kAlignment, 0u);
    EXPECT_TRUE(std::all_of(arena.data(), arena.data() + bytes, [](std::byte b) { return b == std::byte{0}; }));
    arena.data()[bytes - 1] = std::byte{1};  // writable to its end
  }
  const Arena none(0);
  EXPECT_EQ(none.data(), nullptr);
}

TEST(Arena, MovesAndZeroes) {
  Arena a(1000);
  std::byte* data = a.data();
  data[999] = std::byte{3};
  Arena b = std::move(a);
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(a.bytes(), 0);
  Arena c(Arena::kMappedFrom);
  c = std::move(b);
  EXPECT_EQ(c.bytes(), 1000);
  c.zero();
  EXPECT_EQ(data[999], std::byte{0});
}

TEST(Arena, RefusesBeforeTouchingMemory) {
  try {
    const Arena arena(int64_t{1} << 50, "activations");
    FAIL() << "a petabyte was granted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::memory);
    const std::string text = error.what();
    EXPECT_EQ(text.rfind("Error [memory] activations: needs 1,125,899,906,842,624 bytes, ", 0), 0u) << text;
    EXPECT_NE(text.find("are available on cpu"), std::string::npos) << text;
  }
  EXPECT_THROW(Arena(-1), Error);
}

}  // namespace
}  // namespace brisk
