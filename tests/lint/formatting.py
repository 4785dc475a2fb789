"""Every C++ file is formatted as .clang-format says, by version 14: another version would format some lines differently."""

import shutil
import sys

import lint

FORMATTER = shutil.which("clang-format-14")


def check(tree):
    paths = lint.files(tree)
    if not paths:
        return []
    result = lint.run([FORMATTER, "--dry-run", "-Werror", "--style=file", *map(str, paths)], cwd=tree)
    wrong = sorted({line.split(": error:")[0] for line in result.stdout.splitlines() if ": error:" in line})
    first = {}
    for place in wrong:
        first.setdefault(place.split(":")[0], place)
    if result.returncode and not wrong:
        return [result.stdout]
    return [f"{place}: not formatted; run clang-format-14 -i" for place in first.values()]


CLEAN = {".clang-format": "BasedOnStyle: Google\n", "src/core/a.cpp": "int a = 1;\n"}
PLANTED = [({"src/core/b.cpp": "int  b=1 ;\n"}, ["b.cpp:1", "not formatted"])]

if __name__ == "__main__":
    if FORMATTER is None:
        print("SKIPPED: clang-format-14 is not installed")
        sys.exit(0)
    sys.exit(lint.main(check, PLANTED, CLEAN))
