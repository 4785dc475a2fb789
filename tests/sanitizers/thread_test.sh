#!/usr/bin/env bash
# No data race in the pool, the loader, a step on several threads and the loop around it.
exec bash "$BRISK_SOURCE/tests/sanitizers/run.sh" thread core_tests data_tests images_tests exec_tests
