#!/usr/bin/env bash
# No access out of bounds, leak or undefined behaviour in kernels, files, plans and steps.
images=()  # built only where the decoders' libraries are
[ -x "$BRISK_BIN/images_tests" ] && images=(images_tests)
exec bash "$BRISK_SOURCE/tests/sanitizers/run.sh" address core_tests data_tests "${images[@]}" exec_tests cases_tests
