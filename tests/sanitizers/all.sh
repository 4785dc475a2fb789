#!/usr/bin/env bash
# The whole suite under both sanitizers, one after the other; takes about an hour on two cores, so it is not part of
# tests/run.sh, which runs the programs that matter most.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
failed=0
for kind in address thread; do
  echo "== $kind"
  BRISK_SANITIZE=$kind BRISK_BUILD_DIR="build/whole-$kind" bash tests/run.sh || failed=1
done
exit $failed
