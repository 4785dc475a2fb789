#!/usr/bin/env bash
# run.sh address|thread PROGRAM...: builds the named test programs with a sanitizer and runs them; any report fails.
# The whole suite under both sanitizers: tests/sanitizers/all.sh.
set -euo pipefail
kind="$1"
shift
if [ -n "${BRISK_SANITIZE:-}" ]; then
  echo "SKIPPED: this build is sanitized already"
  exit 77
fi
build="$(dirname "$BRISK_BIN")/$kind"
launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
cmake -S "$BRISK_SOURCE" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBRISK_SANITIZE="$kind" -DBUILD_SHARED_LIBS=OFF \
  -DBRISK_TESTS=ON -DBRISK_EXAMPLES=OFF -DBRISK_BENCHMARKS=OFF -DBRISK_CLI=OFF "${launcher[@]}" >/dev/null
cmake --build "$build" --target "$@" --parallel 2 >"$build/build.log" || { tail -n 40 "$build/build.log"; exit 1; }
for program in "$@"; do
  echo "$kind: $program"
  BRISK_CASES=small "$build/bin/$program" --gtest_brief=1 --gtest_filter="-*Serial*:*Speed*"
done
