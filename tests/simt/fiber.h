// Stacks that the threads of a block run on. A fiber stays on the OS thread that made it.
#pragma once

#include <cstddef>

namespace brisk::simt {

struct Fiber {
  void* stack_pointer = nullptr;  ///< where it goes on
  char* stack = nullptr;          ///< lowest byte; below it lies a page that may not be touched
  size_t bytes = 0;
  size_t offset = 0;           ///< unused bytes at the top: equal offsets would share the same lines of the cache
  void* fake_stack = nullptr;  ///< AddressSanitizer's
  void* identity = nullptr;    ///< ThreadSanitizer's
};

/// A fiber that starts in `entry`. SIMT_STACK_KB (256): the size of its stack.
Fiber* new_fiber(size_t number, void (*entry)());
/// Makes it start in `entry` again, whatever it was doing.
void restart(Fiber& fiber, void (*entry)());
/// Goes on with `to`; returns when something switches back to `from`.
void switch_fiber(Fiber& from, Fiber& to);
/// The first thing on a new fiber.
void fiber_entered();
/// Names the fiber in ThreadSanitizer's reports.
void name_fiber(Fiber& fiber, const char* name);
/// Makes `fiber` stand for the OS thread's own stack.
void adopt_os_thread(Fiber& fiber);

}  // namespace brisk::simt
