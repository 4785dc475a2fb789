#!/usr/bin/env bash
# cuda_headers.sh FOLDER: the headers with which the emulation in tests/simt compiles the kernels. Where no toolkit is
# installed they are fetched from Python's package index into FOLDER; prints the include folder to use on stdout, nothing
# when there is none. Failing is no error: those tests are skipped then.
set -uo pipefail
folder="$1"
for include in "${CUDA_PATH:-}/include" "${CUDA_HOME:-}/include" /usr/local/cuda/include /usr/include "$folder/nvidia/cu13/include"; do
  if [ -f "$include/cuda_bf16.hpp" ]; then
    echo "$include"
    exit 0
  fi
done
python3 -m pip --version >/dev/null 2>&1 || bash "$(dirname "${BASH_SOURCE[0]}")/packages.sh" cuda-headers >&2
if ! python3 -m pip --version >/dev/null 2>&1; then
  echo "cuda_headers: no CUDA toolkit and no pip to fetch its headers with; going on without" >&2
  exit 0
fi
echo "cuda_headers: fetching the headers of the CUDA runtime (7 MB) into $folder" >&2
if python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target "$folder" \
  nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl >&2 && [ -f "$folder/nvidia/cu13/include/cuda_bf16.hpp" ]; then
  echo "$folder/nvidia/cu13/include"
else
  echo "cuda_headers: the package index does not offer them; going on without" >&2
fi
exit 0
