#!/usr/bin/env bash
# What only a machine with an NVIDIA GPU can tell, in under eight minutes: bash tests/device/run.sh [PART...]
#   build      the library and the programs below, for the GPU here alone
#   table      the kernels' own tests and the op case table on the device, against references in double precision
#   curves     training on the device against the CPU backend
#   sanitizer  the kernels' tests under compute-sanitizer, where it is installed
#   kernels    TFLOP/s of products and convolutions, beside PyTorch's where it is installed
#   step       training steps a second, beside PyTorch's where it is installed
# No PART: all. Settings from the environment: BRISK_BUILD_DIR (build-device), BRISK_OUT (a folder that gets the output of
# each part; default <build>/device), PYTHON (python3). The last line is "N passed, N failed" in parts.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build="${BRISK_BUILD_DIR:-build-device}"
out="${BRISK_OUT:-$build/device}"
python="${PYTHON:-python3}"
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(build table curves sanitizer kernels step)
passed=0 failed=0 skipped=()
mkdir -p "$out"

# part LIMIT_S NAME COMMAND...: runs the command with a time limit; its output goes to the screen and to $out/NAME.txt.
part() {
  local limit=$1 name=$2 started=$SECONDS
  shift 2
  printf '\n== %s\n' "$name"
  if timeout "$limit" bash -c '"$@"' part "$@" 2>&1 | tee "$out/$name.txt"; then
    passed=$((passed + 1))
    echo "== $name: passed, $((SECONDS - started)) s"
  else
    failed=$((failed + 1))
    echo "== $name: FAILED, $((SECONDS - started)) s (limit $limit)"
  fi
}
skip() {
  echo "== $1: skipped: $2"
  skipped+=("$1")
}
has_torch() { "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' >/dev/null 2>&1; }

build_all() {
  local capability architectures
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d '. ')
  [ -n "$capability" ] || { echo "nvidia-smi names no GPU: this script is for a machine with one"; return 1; }
  architectures="$capability-real"
  [ "$capability" != 90 ] || architectures="90a-real"
  local settings=(-DCMAKE_BUILD_TYPE=Release -DBRISK_CUDA=ON "-DBRISK_CUDA_ARCHITECTURES=$architectures" -DBRISK_TESTS=ON
                  -DBRISK_BENCHMARKS=ON -DBRISK_CLI=ON -DBRISK_EXAMPLES=OFF -DBRISK_INSTALL=OFF)
  if command -v ninja >/dev/null; then settings+=(-G Ninja); fi
  cmake -S . -B "$build" "${settings[@]}" && cmake --build "$build" --parallel "$(nproc)" --target device_tests device_benchmark brisk_cli
}

# device_tests FILTER [COMMAND...]: the cases of the filter, under the command; none is a failure.
device_tests() {
  local filter=$1 said
  shift
  said=$("$@" "$build/bin/device_tests" --gtest_brief=1 "--gtest_filter=$filter" 2>&1)
  local code=$?
  echo "$said"
  if grep -q 'PASSED  \] 0 tests' <<<"$said"; then
    echo "no test is called $filter"
    code=1
  fi
  return $code
}

kernels_speed() {
  echo "-- Brisk" && "$build/bin/device_benchmark" f16 || return 1
  if has_torch; then echo "-- PyTorch" && "$python" benchmarks/device/torch_kernels.py f16; fi
}

# The same step on both; a failing peer does not fail the part.
step_speed() {
  local network batch
  for pair in "lenet 64" "lenet 512" "resnet18_cifar 256"; do
    read -r network batch <<<"$pair"
    for precision in f32 fp16; do
      echo "-- $network batch $batch $precision: Brisk"
      "$build/bin/brisk" bench "$network" --batch "$batch" --precision "$precision" --device cuda --seconds 2 --json || return 1
      if has_torch; then
        mode=f32_cl
        [ "$precision" = f32 ] || mode=fp16_cl
        echo "-- $network batch $batch $mode: PyTorch"
        "$python" benchmarks/peers/torch_step.py "$network" --batch "$batch" --device cuda --mode "$mode" --seconds 2 || true
      fi
    done
  done
}

export build python
export -f build_all device_tests has_torch kernels_speed step_speed
nvidia-smi --query-gpu=name,driver_version,memory.total,compute_cap --format=csv 2>/dev/null | tee "$out/device.txt" ||
  echo "nvidia-smi is not here"
for name in "${parts[@]}"; do
  case "$name" in
    build) part 200 build build_all ;;
    table) part 60 table device_tests "-*Train*" ;;
    curves) part 60 curves device_tests "*Train*" ;;
    sanitizer)
      if command -v compute-sanitizer >/dev/null; then
        part 60 sanitizer device_tests "*Gemm*:*Conv2d*:*BatchNorm*:*LayerNorm*:*Walks*" compute-sanitizer --error-exitcode 1
      else
        skip sanitizer "compute-sanitizer is not installed"
      fi
      ;;
    kernels) part 40 kernels kernels_speed ;;
    step) part 58 step step_speed ;;
    *)
      echo "run.sh: unknown part $name (build table curves sanitizer kernels step)" >&2
      exit 2
      ;;
  esac
  if [ "$name" = build ] && [ "$failed" -gt 0 ]; then break; fi
done
[ ${#skipped[@]} -eq 0 ] || echo "skipped: ${skipped[*]}"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
