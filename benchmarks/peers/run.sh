#!/usr/bin/env bash
# Measures a training step of Brisk against PyTorch's: same machine, same threads, in turns.
#   bash benchmarks/peers/run.sh [--quick] [--build FOLDER] [--rounds N] [--seconds S] [--threads T] [--batches 4,64,512]
#                                [--network lenet] [--modes f32,...] [--out FILE]
# --build: where bin/brisk is (default: build). --quick: one round of one second. PyTorch is installed into a virtual
# environment at $BRISK_PEERS_VENV (default: <build>/peers-venv); one that can import torch and torchvision already is used as it is.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
build="$root/build"
out=""
pass=()
while (($#)); do
  case $1 in
    --build | --out | --batches | --modes | --network | --rounds | --seconds | --threads)
      if (($# < 2)); then
        echo "run.sh: $1 needs a value" >&2
        exit 2
      fi
      case $1 in
        --build) build=$2 ;;
        --out) out=$2 ;;
        *) pass+=("$1" "$2") ;;
      esac
      shift 2
      ;;
    --quick)
      pass+=(--rounds 1 --seconds 1)
      shift
      ;;
    --help | -h)
      sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *)
      echo "run.sh: unknown option $1 (see --help)" >&2
      exit 2
      ;;
  esac
done

if [[ ! -x $build/bin/brisk ]]; then
  echo "run.sh: $build/bin/brisk is missing; build Brisk first, or give --build" >&2
  exit 2
fi
venv=${BRISK_PEERS_VENV:-$build/peers-venv}
if ! "$venv/bin/python" -c "import torch, torchvision" >/dev/null 2>&1; then
  echo "installing PyTorch and torchvision into $venv (once)"
  python3 -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --requirement "$here/requirements.txt"
fi
"$venv/bin/python" "$here/compare.py" --brisk "$build/bin/brisk" --python "$venv/bin/python" \
  --out "${out:-$build/peers.json}" "${pass[@]}"
