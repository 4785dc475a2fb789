// Which instruction sets this machine's processor and system support.
#include <cpuid.h>

#include <cstdlib>
#include <string>

#include "backend/cpu/isa.h"
#include "brisk/error.h"

namespace brisk::backend::cpu {
namespace {

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(unsigned leaf) {
  Registers r;
  __get_cpuid_count(leaf, 0, &r.a, &r.b, &r.c, &r.d);
  return r;
}

bool all(unsigned value, unsigned bits) { return (value & bits) == bits; }

// XCR0: the registers that the operating system saves when it switches threads.
unsigned saved_state() {
  unsigned low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

struct Support {
  bool avx2 = false;
  bool avx512 = false;
};

Support detect() {
  constexpr unsigned kYmm = 0x6, kZmm = 0xE6;
  const Registers basic = cpuid(1), extended = cpuid(7);
  if (!all(basic.c, bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C)) return {};
  const unsigned saved = saved_state();
  Support support;
  support.avx2 = all(saved, kYmm) && all(extended.b, bit_AVX2 | bit_BMI2);
  support.avx512 =
      support.avx2 && all(saved, kZmm) && all(extended.b, bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL);
  return support;
}

}  // namespace

const char* name(Isa isa) { return isa == Isa::avx512 ? "avx512" : "avx2"; }

Isa widest_isa() {
  static const Support support = detect();
  if (!support.avx2) {
    throw Error(ErrorCode::backend, "cpu", "this processor has no AVX2 with FMA, which Brisk's kernels need");
  }
  const char* text = std::getenv("BRISK_CPU_ISA");
  const std::string cap = text ? text : "";
  if (!cap.empty() && cap != "avx2" && cap != "avx512") {
    throw Error(ErrorCode::backend, "BRISK_CPU_ISA", "is '" + cap + "': allowed are avx2, avx512 and nothing");
  }
  return support.avx512 && cap != "avx2" ? Isa::avx512 : Isa::avx2;
}

}  // namespace brisk::backend::cpu
