// Switching stacks: the callee-saved registers of x86-64 go to the old stack and come from the new one.
#include "simt/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "simt/sanitizer.h"

extern "C" void brisk_simt_switch_stack(void** save, void* load);
asm(R"(
.text
.globl brisk_simt_switch_stack
.type brisk_simt_switch_stack, @function
brisk_simt_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size brisk_simt_switch_stack, .-brisk_simt_switch_stack
)");

namespace brisk::simt {
namespace {

constexpr size_t kPage = 4096;
constexpr int kSavedRegisters = 6;
thread_local Fiber* left;  // the fiber of the last switch on this OS thread

size_t stack_bytes() {
  const char* kilobytes = std::getenv("SIMT_STACK_KB");
  return (kilobytes ? std::strtoull(kilobytes, nullptr, 10) : 256) * 1024;
}

void finish_switch([[maybe_unused]] void* fake_stack) {
#if defined(BRISK_SIMT_ASAN)
  const void* bottom = nullptr;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(fake_stack, &bottom, &bytes);
  if (!left->stack) {  // an OS thread's own stack: only AddressSanitizer knows where it is
    left->stack = const_cast<char*>(static_cast<const char*>(bottom));
    left->bytes = bytes;
  }
#endif
}

}  // namespace

void restart(Fiber& fiber, void (*entry)()) {
  allow(fiber.stack, fiber.bytes);
  auto* top = reinterpret_cast<uintptr_t*>(fiber.stack + fiber.bytes - fiber.offset);
  // The stack as switch_stack leaves it: registers, the address to return to, and none for `entry` to return to.
  uintptr_t* saved = top - (kSavedRegisters + 2);
  for (int i = 0; i < kSavedRegisters + 2; ++i) saved[i] = 0;
  saved[kSavedRegisters] = reinterpret_cast<uintptr_t>(entry);
  fiber.stack_pointer = saved;
  fiber.fake_stack = nullptr;
#if defined(BRISK_SIMT_TSAN)
  if (fiber.identity) __tsan_destroy_fiber(fiber.identity);
  fiber.identity = __tsan_create_fiber(0);
#endif
}

Fiber* new_fiber(size_t number, void (*entry)()) {
  static const size_t bytes = stack_bytes();
  void* memory =
      mmap(nullptr, bytes + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("simt: no memory for a stack");
    std::abort();
  }
  mprotect(memory, kPage, PROT_NONE);
  auto* fiber = new Fiber;
  fiber->stack = static_cast<char*>(memory) + kPage;
  fiber->bytes = bytes;
  fiber->offset = number * 448 % kPage;
  restart(*fiber, entry);
  return fiber;
}

void switch_fiber(Fiber& from, Fiber& to) {
  left = &from;
#if defined(BRISK_SIMT_TSAN)
  __tsan_switch_to_fiber(to.identity, __tsan_switch_to_fiber_no_sync);
#endif
#if defined(BRISK_SIMT_ASAN)
  __sanitizer_start_switch_fiber(&from.fake_stack, to.stack, to.bytes);
#endif
  brisk_simt_switch_stack(&from.stack_pointer, to.stack_pointer);
  finish_switch(from.fake_stack);
}

void fiber_entered() { finish_switch(nullptr); }

void name_fiber([[maybe_unused]] Fiber& fiber, [[maybe_unused]] const char* name) {
#if defined(BRISK_SIMT_TSAN)
  __tsan_set_fiber_name(fiber.identity, name);
#endif
}

void adopt_os_thread([[maybe_unused]] Fiber& fiber) {
#if defined(BRISK_SIMT_TSAN)
  fiber.identity = __tsan_get_current_fiber();
#endif
}

}  // namespace brisk::simt
