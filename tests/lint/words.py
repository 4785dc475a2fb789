"""Words, paths and bytes that have no place in the tree."""

import re
import sys

import lint

# Written so that this file does not find itself.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")
MACHINE = re.compile(r"(?<![\w.$}/-])/wor" r"k/\w")
USUAL = re.compile(r"(?<![\w.$}/-])/(tm" r"p|hom" r"e|roo" r"t)/")
CONFLICT = re.compile(r"^(<{7}|>{7}|={7})( |$)")
TEXT = (".h", ".cpp", ".cu", ".cuh", ".py", ".sh", ".md", ".txt", ".cmake", ".in", ".yml", ".json", ".tsv")
TOP = {"CMakeLists.txt", "README.md", "LICENSE", "include", "src", "kernels", "tests", "benchmarks", "examples", "cmake"}
MADE_BY_USE = ("build", "runs")
FOLDERS = ("include", "src", "kernels", "tests", "benchmarks", "examples", "cmake")


def check_line(line, is_test):
    """Tests may use a temporary folder and made-up paths."""
    if UNFINISHED.search(line):
        yield "unfinished work is done or left out, not marked"
    if MACHINE.search(line):
        yield "a path of one machine"
    if USUAL.search(line) and not is_test:
        yield "a fixed folder; ask for a temporary one, or take the user's"
    if CONFLICT.match(line):
        yield "a merge conflict"
    if line != line.rstrip() and line.strip():
        yield "white space at the end"


def check(tree):
    found = []
    root = lint.pathlib.Path(tree)
    for entry in sorted(root.iterdir()):
        if not entry.name.startswith((".",) + MADE_BY_USE) and entry.name not in TOP:
            found.append(f"{entry.name}:1: does not belong at the top level")
    top = [entry for entry in sorted(root.iterdir()) if entry.is_file() and entry.name in TOP]
    for path in top + lint.files(tree, FOLDERS, TEXT):
        name = lint.name(tree, path)
        try:
            lines = lint.lines(path)
        except UnicodeDecodeError:
            found.append(f"{name}:1: not UTF-8")
            continue
        for number, line in enumerate(lines, 1):
            found += [f"{name}:{number}: {message}" for message in check_line(line, name.startswith("tests/"))]
    return found


CLEAN = {
    "README.md": "# Brisk\n\nA path such as src/tmp/x or $HOME/work/x or build/root/x is fine.\n",
    "src/core/a.cpp": "// Comments say why.\n",
    "tests/core/a_test.cpp": '// "/tm' 'p/" is fine here\n',
}
PLANTED = [
    ({"src/core/b.cpp": "\n// TO" "DO: later\n"}, ["src/core/b.cpp:2", "unfinished"]),
    ({"tests/core/b_test.cpp": "// FIX" "ME\n"}, ["unfinished"]),
    ({"src/core/b.cpp": 'open("/tm' 'p/x");\n'}, ["fixed folder"]),
    ({"README.md": "see /wor" "k/main\n"}, ["README.md:1", "one machine"]),
    ({"src/core/b.cpp": "int a; \n"}, ["white space"]),
    ({"src/core/b.cpp": "<<<<<<< HEAD\n"}, ["conflict"]),
    ({"notes.txt": "\n"}, ["top level"]),
]

if __name__ == "__main__":
    sys.exit(lint.main(check, PLANTED, CLEAN))
