#!/usr/bin/env bash
# No access out of bounds, leak or undefined behaviour in kernels, files, plans and steps.
exec bash "$BRISK_SOURCE/tests/sanitizers/run.sh" address core_tests data_tests images_tests exec_tests cases_tests
