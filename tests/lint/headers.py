"""Public headers: each compiles alone without a warning, includes light standard headers only, is under 300 lines.

Compilers come from BRISK_COMPILERS (separated by colons), the first of which also measures with `--cost TREE`: the time to
compile a program that includes brisk/brisk.h, at most twice that of one that includes the standard headers alone (the
median of several interleaved pairs, in processor time).
"""

import os
import re
import resource
import statistics
import sys

import lint

COMPILERS = [name for name in os.environ.get("BRISK_COMPILERS", "c++").split(":") if name]
STANDARD = ("array", "cstddef", "cstdint", "exception", "functional", "initializer_list", "memory", "optional", "span", "string",
            "string_view", "type_traits", "utility", "vector")
LONGEST = 300
PAIRS = 7
INCLUDE = re.compile(r"^\s*#\s*include\s*([<\"])([^>\"]+)[>\"]")


def allowed(header, brackets, target):
    if target.startswith("brisk/"):
        return not brackets
    return target in STANDARD or (header == "eigen.h" and target.startswith("Eigen/"))


def compile_alone(compiler, tree, path):
    flags = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-fsyntax-only", "-x", "c++"]
    include = path.relative_to(lint.pathlib.Path(tree) / "include").as_posix()
    program = f'#include "{include}"\n#include "{include}"\nint main() {{}}\n'
    paths = ["-I", f"{tree}/include", "-isystem", "/usr/include/eigen3"]
    return lint.run([compiler, *flags, *paths, "-"], input=program)


def check(tree):
    found = []
    for path in lint.files(tree, ("include",)):
        name = lint.name(tree, path)
        text = lint.lines(path)
        if len(text) >= LONGEST:
            found.append(f"{name}:{len(text)}: {len(text)} lines; a public header has fewer than {LONGEST}")
        if not any(line.startswith("#pragma once") for line in text):
            found.append(f"{name}:1: no #pragma once")
        for number, line in enumerate(text, 1):
            match = INCLUDE.match(line)
            if match and not allowed(path.name, match.group(1) == "<", match.group(2)):
                found.append(f"{name}:{number}: {match.group(2)} is not one of the light headers a public header may use")
        if path.name == "eigen.h" and not os.path.isdir("/usr/include/eigen3"):
            continue
        for compiler in COMPILERS:
            result = compile_alone(compiler, tree, path)
            if result.returncode:
                found.append(f"{name}:1: does not compile alone with {compiler}:\n{result.stdout}")
    return found


def compile_seconds(tree, program):
    """Processor time of one compilation."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = lint.run([COMPILERS[0], "-std=c++20", "-I", f"{tree}/include", "-x", "c++", "-c", "-o", os.devnull, "-"],
                      input=program)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if result.returncode:
        raise RuntimeError(result.stdout)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cost(tree):
    standard = "".join(f"#include <{header}>\n" for header in STANDARD) + "int main() {}\n"
    umbrella = "#include <brisk/brisk.h>\nint main() {}\n"
    compile_seconds(tree, standard)
    pairs = [(compile_seconds(tree, umbrella), compile_seconds(tree, standard)) for _ in range(PAIRS)]
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    print(f"brisk/brisk.h: {ratio:.2f} times the standard headers ({statistics.median(p[0] for p in pairs):.2f} s against "
          f"{statistics.median(p[1] for p in pairs):.2f} s)")
    return ratio


CLEAN = {"include/brisk/a.h": '#pragma once\n#include <vector>\n#include "brisk/ops/b.h"\ninline int a() { return 1; }\n',
         "include/brisk/ops/b.h": "#pragma once\n"}
PLANTED = [
    ({"include/brisk/c.h": "#pragma once\n#include <iostream>\n"}, ["c.h:2", "iostream"]),
    ({"include/brisk/c.h": "#pragma once\n#include <Eigen/Core>\n"}, ["c.h:2", "Eigen/Core"]),
    ({"include/brisk/c.h": "#pragma once\n#include <brisk/a.h>\n"}, ["c.h:2"]),
    ({"include/brisk/c.h": "#pragma once\nstd::string c();\n"}, ["c.h:1", "does not compile alone"]),
    ({"include/brisk/c.h": "#pragma once\ninline int c(int unused) { return 1; }\n"}, ["unused"]),
    ({"include/brisk/c.h": "inline int c() { return 1; }\n"}, ["pragma once"]),
    ({"include/brisk/c.h": "#pragma once\n" + "\n" * 300}, ["301 lines"]),
]


def main(arguments):
    if arguments[0] != "--cost":
        return lint.main(check, PLANTED, CLEAN, arguments)
    if arguments[1] == "--self-check":
        with lint.tempfile.TemporaryDirectory() as tree:
            heavy = "".join(f"struct S{i} {{}}; inline auto f{i}() {{ return std::vector<S{i}>(3); }}\n" for i in range(400))
            lint.write(tree, {"include/brisk/brisk.h": "#include <vector>\n" + heavy})
            return 0 if cost(tree) > 2 else 1
    return 0 if cost(arguments[1]) <= 2 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
