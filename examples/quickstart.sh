#!/usr/bin/env bash
# From a bare Debian 12 to a trained network: installs what is missing, builds, trains LeNet on Fashion-MNIST (on digits the
# library draws where that package is absent) to at least 90 % accuracy, shows the loss curve and says where the run lies.
# May be run again at any time. Settings from the environment: BRISK_BUILD_DIR (build), CXX.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build="${BRISK_BUILD_DIR:-build}"
run="runs/quickstart"

echo "== packages"
bash cmake/packages.sh build
echo "== build into $build"
settings=(-DCMAKE_BUILD_TYPE=Release)
if [ ! -f "$build/CMakeCache.txt" ]; then  # a folder that already builds the tests goes on building them
  settings+=(-DBRISK_TESTS=OFF -DBRISK_BENCHMARKS=OFF)
fi
if command -v ccache >/dev/null; then
  settings+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
cmake -S . -B "$build" -G Ninja "${settings[@]}"
cmake --build "$build" --parallel --target lenet own_loop brisk_cli
echo "== train"
"$build/bin/lenet" --quickstart --run-folder "$run" --svg
echo "== done"
echo "events, one JSON object a line: $run/events.jsonl"
echo "loss curve:                     $run/loss.svg"
echo "the program:                    examples/lenet; try $build/bin/lenet --help and $build/bin/brisk --help"
