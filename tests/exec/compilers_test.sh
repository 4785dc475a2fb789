#!/usr/bin/env bash
# g++ and clang++ must make the same bits: builds the exec tests with the other compiler and compares what they print,
# for each instruction set of this machine. Skipped when clang++ is not installed.
set -euo pipefail
command -v clang++ >/dev/null || { echo "SKIPPED: clang++ is not installed"; exit 77; }
other="${BRISK_OTHER_COMPILER_DIR:-$(dirname "$BRISK_BIN")/clang}"
launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
cmake -S "$BRISK_SOURCE" -B "$other" -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=Release -DBRISK_TESTS=ON \
  -DBRISK_EXAMPLES=OFF -DBRISK_BENCHMARKS=OFF -DBRISK_CLI=OFF -DBRISK_CUDA=OFF "${launcher[@]}" >/dev/null
cmake --build "$other" --target exec_tests --parallel 2 >/dev/null
for isa in avx2 avx512; do
  grep -q -w "${isa/512/512f}" /proc/cpuinfo || continue
  bits() { BRISK_CPU_ISA=$isa "$1/exec_tests" --gtest_filter=Bits.Printed | grep '^bits'; }
  here="$(bits "$BRISK_BIN")"
  there="$(bits "$other/bin")"
  echo "$isa"; echo "$here"
  [ -n "$here" ] && [ "$here" = "$there" ] || { echo "clang++ makes other bits:"; echo "$there"; exit 1; }
done
