#!/usr/bin/env bash
# The example checks its own result: it ends with 0 only when that is good enough.
exec bash "$BRISK_SOURCE/tests/examples/run.sh" tabular
