#!/usr/bin/env bash
# The emulated kernels for longer than CI does: without a sanitizer and under AddressSanitizer in more schedules, and under
# ThreadSanitizer, whose findings do not depend on the schedule but on what a schedule reaches. About an hour on two cores.
#   BRISK_BUILD_DIR  a configured build (build)     SIMT_SEEDS  schedules to start in ("1 2 3")
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build="${BRISK_BUILD_DIR:-build}"
cmake --build "$build" --target simt_tests simt_asan_tests simt_tsan_tests --parallel 2 || exit 1
failed=0
for program in simt_tests simt_asan_tests simt_tsan_tests; do
  for seed in ${SIMT_SEEDS:-1 2 3}; do
    echo "== $program, schedule $seed"
    SIMT_SEED=$seed "$build/bin/$program" --gtest_brief=1 || failed=1
  done
done
exit $failed
