#!/usr/bin/env bash
# No data race in the pool, the loader, a step on several threads and the loop around it.
images=()  # built only where the decoders' libraries are
[ -x "$BRISK_BIN/images_tests" ] && images=(images_tests)
exec bash "$BRISK_SOURCE/tests/sanitizers/run.sh" thread core_tests data_tests "${images[@]}" exec_tests
