#!/usr/bin/env bash
# run.sh PROGRAM: runs an example in a folder of its own, which is removed afterwards.
set -euo pipefail
if [ ! -x "$BRISK_BIN/$1" ]; then
  echo "SKIPPED: the examples are not built (BRISK_EXAMPLES)"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"$BRISK_BIN/$1"
