"""Objects compiled for an instruction set hold no weak function that the linker could hand to the rest of the library.

Where two objects hold the same inline function (a std::vector's, a std::min's), the linker keeps one of them for all. Were it
the one compiled for AVX-512, a processor without AVX-512 would stop at an illegal instruction in code that has nothing to do
with kernels. Weak symbols are allowed in the namespace of the instruction set, which no other object uses.

`isa.py FILE`: FILE lists objects, one a line, each with the name of its instruction set in its path.
"""

import re
import subprocess
import sys
import tempfile

WEAK = re.compile(r"^[0-9a-f]* +([WVu]) (.+)$")
NAMESPACE = re.compile(r"\b(avx2|avx512|amx)::")


def weak_functions(objects):
    found = []
    for path in objects:
        listing = subprocess.run(["nm", "-C", "--defined-only", path], check=True, stdout=subprocess.PIPE, text=True).stdout
        for line in listing.splitlines():
            match = WEAK.match(line)
            if match and not NAMESPACE.search(match.group(2)):
                found.append(f"{path}: {match.group(2)}")
    return found


def self_check():
    source = """#include <vector>
namespace brisk::avx512 { struct Own { virtual ~Own() {} }; template <class T> __attribute__((noinline)) T own(T a) { return a; } }
__attribute__((noinline)) inline float shared(float a) { return a; }
float kernel(float a) { brisk::avx512::Own x; return shared(brisk::avx512::own(a)); }
"""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/kernel.o"
        subprocess.run(["c++", "-std=c++20", "-O2", "-mavx512f", "-x", "c++", "-c", "-o", path, "-"], input=source, text=True,
                       check=True)
        found = weak_functions([path])
    wrong = [name for name in found if "shared" not in name]
    return wrong if wrong or found else ["the planted function was not found"]


def main(argument):
    if argument == "--self-check":
        found = self_check()
    else:
        with open(argument, encoding="utf-8") as file:
            objects = file.read().split("\n")
        found = weak_functions([path for path in objects if path])
        if not objects:
            found.append("no objects are listed")
    for finding in found:
        print(finding)
    print(f"{len(found)} found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
