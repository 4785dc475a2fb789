#!/usr/bin/env bash
# keep_ptxas_report.sh COMMAND...: runs a compilation by nvcc and keeps what `-Xptxas -v` reports of each kernel beside the
# object, as <object>.ptxas, for tests/kernels/resources_test.py. The rest of stderr is passed on.
set -uo pipefail
object=
for ((i = 1; i < $#; ++i)); do
  if [ "${!i}" = -o ]; then
    next=$((i + 1))
    object="${!next}"
  fi
done
report="${object:-/dev/null}.ptxas"
[ -n "$object" ] || report=/dev/null
"$@" 2>"$report.all"
code=$?
grep -vE '^(ptxas info|ptxas \. info| +[0-9]+ bytes (stack|spill|cumul))' "$report.all" >&2
grep -E '^(ptxas info| +[0-9]+ bytes stack)' "$report.all" >"$report"
rm -f "$report.all"
exit $code
