#!/usr/bin/env bash
# Installs what is missing (Debian 12), builds everything, runs every test. The last line is "N passed, N failed" in test
# cases; the exit code is 1 when one failed or none ran. Settings from the environment:
#   BRISK_BUILD_DIR  where to build (build)            CXX             the compiler (c++)
#   BRISK_SANITIZE   address or thread                 BRISK_TEST_JOBS tests at the same time (2)
#   BRISK_TESTS_ONLY a regular expression of test names (all)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build="${BRISK_BUILD_DIR:-build}"
jobs="${BRISK_TEST_JOBS:-2}"

say() { printf '\n== %s\n' "$*"; }
fail() {
  echo "$1" >&2
  echo "0 passed, 1 failed"
  exit 1
}

say "packages"
bash cmake/packages.sh build test || fail "the packages are missing"

say "configure into $build"
settings=(-DCMAKE_BUILD_TYPE=Release -DBRISK_WERROR=ON -DBRISK_TESTS=ON -DBRISK_EXAMPLES=ON -DBRISK_BENCHMARKS=ON
          -DBRISK_CLI=ON -DBRISK_INSTALL=ON -DBRISK_SANITIZE="${BRISK_SANITIZE:-}")
if [ -n "${BRISK_SANITIZE:-}" ]; then
  settings+=(-DBUILD_SHARED_LIBS=OFF)
fi
if [ -z "${BRISK_SANITIZE:-}" ]; then
  headers=$(bash cmake/cuda_headers.sh "$build/cuda-headers")
  if [ -n "$headers" ]; then
    settings+=(-DBRISK_CUDA_INCLUDE="$headers")
  fi
fi
if command -v ccache >/dev/null; then
  settings+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
cmake -S . -B "$build" -G Ninja "${settings[@]}" || fail "the configuration failed"

say "build"
cmake --build "$build" --parallel || fail "the build failed"

say "tests, $jobs at a time"
report="$(cd "$build" && pwd)/tests.xml"
rm -f "$report"
only=()
if [ -n "${BRISK_TESTS_ONLY:-}" ]; then
  only=(-R "$BRISK_TESTS_ONLY")
fi
started=$SECONDS
ctest --test-dir "$build" --parallel "$jobs" --output-on-failure --output-junit "$report" "${only[@]}" || true
say "$((SECONDS - started)) s"
python3 tests/count.py "$report"
