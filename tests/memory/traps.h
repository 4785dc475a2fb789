// Stands in front of malloc and mmap of this test program: counts calls, and follows the bytes held.
#pragma once

#include <cstdint>

namespace brisk::test {

struct HeldMemory {
  int64_t calls = 0;         ///< malloc and its kin, and mmap
  int64_t heap_bytes = 0;    ///< usable bytes now
  int64_t mapped_bytes = 0;  ///< mapped by mmap now, heap growth not counted
  int64_t largest_call = 0;  ///< since the last reset()
};
HeldMemory held_memory();
void reset_largest_call();
/// False where a sanitizer owns malloc.
bool traps_work();

}  // namespace brisk::test
