#!/usr/bin/env python3
"""Mechanical mutants of the CUDA kernels: are the tests of a kernel able to fail? Not part of CI (tens of minutes).

    python3 tests/kernels/mutants.py [--build build] [--each 15] [--seed 1] [--jobs 2] [family...]

Over all lines of device code (kernels/<family>.cu and the headers of kernels/ that it includes) it lists what a slip of the
pen could be: a barrier or wait dropped, an index one too high or too low, the operands of - / % swapped, a bound widened by
one. With a fixed seed it draws --each of them for every kernel, compiles each file once with all of them behind a switch, and
runs the family's tests under the emulation once a mutant. A mutant that no test notices survives; those that
tests/kernels/mutants.txt lists with a reason (they compute the same) are told apart. Exit code 1: fewer than 95 % are killed.
"""
import argparse
import concurrent.futures
import json
import os
import random
import re
import shlex
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BARRIER = re.compile(r"^(\s*)((?:__syncthreads|__syncwarp|__threadfence|(?:async_)?\w*(?:wait|commit)\w*(?:<[^;()]*>)?)\([^;]*\));\s*$")
BOUND = re.compile(r" (<|<=|>|>=) (?=[\w(-])")
OPERAND = r"[A-Za-z_][\w.]*(?:\[[\w .+*]*\])?"
SWAP = re.compile(r"(?<=[(=,\[?:] |.[(\[])(" + OPERAND + r") ([-/%]) (" + OPERAND + r")(?=[;,)\]])")
INDEX = re.compile(r"(?<=[\w)\]])\[([^\[\]]+)\]")


def device_lines(text):
    """Line number -> name of the function whose device code it is (the kernel's, or of what kernels call)."""
    lines, owner, index = text.split("\n"), {}, 0
    while index < len(lines):
        if not re.search(r"__(global|device)__", lines[index]) or lines[index].lstrip().startswith(("//", "#")):
            index += 1
            continue
        head, first = "", index
        while index < len(lines) and "{" not in lines[index] and not lines[index].rstrip().endswith(";"):
            index += 1
        head = " ".join(lines[first:index + 1])
        names = re.findall(r"([A-Za-z_]\w*)\s*\(", re.sub(r"__launch_bounds__\s*\([^)]*\)", "", head))
        depth = 0
        while index < len(lines):
            depth += lines[index].count("{") - lines[index].count("}")
            if index > first or depth == 0:
                owner[index] = ("global" if "__global__" in head else "device", names[0] if names else "?")
            if depth == 0:
                break
            index += 1
        index += 1
    return owner


def code_of(line):
    return line.split("//")[0]


def sites(path, text):
    """All slips: (path, line, column, kind, replaced text, text with MUTANT(0) for the switch)."""
    found = []
    for number, owner in device_lines(text).items():
        line = code_of(text.split("\n")[number])
        declared = re.match(r"\s*(?:const )?(?!return |else |case |delete )[A-Za-z_][\w:]*(?:<[^;=]*>)? \w+\[", line)
        if re.match(r"\s*(#|static_assert|template|using|constexpr|BRISK_)", line) or "constexpr" in line or declared:
            continue

        def add(match, kind, new):
            found.append({"path": path, "line": number, "at": match.start(), "old": match.group(0), "kind": kind,
                          "new": new, "owner": owner})

        barrier = BARRIER.match(line)
        if barrier:
            add(barrier, "barrier dropped", f"{barrier.group(1)}if (!MUTANT(0)) {barrier.group(2)};")
            continue
        for m in BOUND.finditer(line):
            sign = "" if m.group(1).startswith("<") else "-"
            add(m, "bound widened", f" {m.group(1)} {sign}MUTANT(0) + ")
        for m in SWAP.finditer(line):
            a, operator, b = m.groups()
            if a != b:
                add(m, "operands swapped", f"(MUTANT(0) ? {b} {operator} {a} : {a} {operator} {b})")
        for m in INDEX.finditer(line):
            if re.match(r"\s*$|[&=]", m.group(1)):
                continue
            add(m, "index + 1", f"[({m.group(1)}) + MUTANT(0)]")
            add(m, "index - 1", f"[({m.group(1)}) - MUTANT(0)]")
    return found


def includes(path, seen):
    for name in re.findall(r'#include "(kernels/[^"]+)"', open(os.path.join(SOURCE, path)).read()):
        if name not in seen and not os.path.basename(name) not in ("cuda.h", "launch.h", "check.h"):
            seen.append(name)
            includes(name, seen)
    return seen


def draw(family, each, seed, left_out):
    """At least `each` slips of every function with device code, as far as it has so many; numbered from 1."""
    chosen, files = [], [f"kernels/{family}.cu"]
    for path in includes(files[0], files):
        text = open(os.path.join(SOURCE, path)).read()
        by_owner = {}
        for site in sites(path, text):
            key = (path, site["line"], site["at"], site["kind"])
            if key not in left_out:
                kind, name = site["owner"]
                by_owner.setdefault(name if kind == "global" else path, []).append(site)
        for name, candidates in sorted(by_owner.items()):
            random.Random(f"{seed} {path} {name}").shuffle(candidates)
            taken = set()
            for site in candidates:  # one slip a place: the switches do not nest
                place = (site["line"], site["at"])
                near = [t for t in taken if t[0] == site["line"] and t[1] < site["at"] + len(site["old"]) and site["at"] < t[2]]
                if near or len(taken) == each:
                    continue
                taken.add((site["line"], site["at"], site["at"] + len(site["old"])))
                chosen.append(dict(site, name=name))
    for number, site in enumerate(chosen, 1):
        site["number"] = number
    return chosen


def write(chosen, folder):
    for path in {site["path"] for site in chosen}:
        lines = open(os.path.join(SOURCE, path)).read().split("\n")
        for site in sorted((s for s in chosen if s["path"] == path), key=lambda s: -s["at"]):
            line = lines[site["line"]]
            new = site["new"].replace("MUTANT(0)", f"MUTANT({site['number']})")
            lines[site["line"]] = line[:site["at"]] + new + line[site["at"] + len(site["old"]):]
        out = os.path.join(folder, path)
        os.makedirs(os.path.dirname(out), exist_ok=True)
        open(out, "w").write("\n".join(lines))


HEADER = """#pragma once
extern int brisk_mutant;
#define MUTANT(number) (brisk_mutant == number)
"""
SWITCH = """#include <cstdlib>
int brisk_mutant = std::getenv("BRISK_MUTANT") ? std::atoi(std::getenv("BRISK_MUTANT")) : 0;
"""


def compile_family(family, arguments, build, target):
    """The tests' program with this family's mutants inside; slips in constant expressions do not compile: left out."""
    folder = os.path.join(build, "mutants", family)
    commands = json.load(open(os.path.join(build, "compile_commands.json")))
    source = os.path.join(SOURCE, f"kernels/{family}.cu")
    entry = next(c for c in commands if c["file"] == source and f"/{target}_code.dir/" in c["command"])
    command = [word for word in shlex.split(entry["command"]) if word != "ccache"]
    at = command.index("-o")
    del command[at:at + 2]
    command = [word for word in command if word not in ("-c", source, "-Werror")]
    left_out = set()
    for _ in range(40):
        chosen = draw(family, arguments.each, arguments.seed, left_out)
        subprocess.run(["rm", "-rf", folder], check=True)
        write(chosen, folder)
        open(os.path.join(folder, "mutant.h"), "w").write(HEADER)
        open(os.path.join(folder, "switch.cpp"), "w").write(SWITCH)
        mutated = os.path.join(folder, f"kernels/{family}.cu")
        made = subprocess.run(command[:1] + [f"-I{folder}", "-include", os.path.join(folder, "mutant.h"), "-w"] + command[1:] +
                              ["-c", mutated, "-o", os.path.join(folder, "mutants.o")], cwd=entry["directory"],
                              capture_output=True, text=True)
        if made.returncode == 0:
            break
        bad = {(m.group(1), int(m.group(2)) - 1) for m in re.finditer(
            re.escape(folder) + r"/(kernels/[^:]+):(\d+)", made.stderr)}
        before = len(left_out)
        left_out |= {(s["path"], s["line"], s["at"], s["kind"]) for s in chosen if (s["path"], s["line"]) in bad}
        if len(left_out) == before:
            sys.exit(f"{family} does not compile:\n{made.stderr[-3000:]}")
    compiler = command[0]
    subprocess.run([compiler, "-c", os.path.join(folder, "switch.cpp"), "-o", os.path.join(folder, "switch.o")], check=True)
    link = subprocess.run(["ninja", "-C", build, "-t", "commands", f"{target.removeprefix('brisk_')}_tests"], capture_output=True, text=True,
                          check=True).stdout.strip().split("\n")[-1]
    program = os.path.join(folder, "tests")
    link = link.split("&&")[1] if link.startswith(": &&") else link
    words = shlex.split(link)
    words[words.index("-o") + 1] = program
    archive = next(i for i, word in enumerate(words) if word.endswith(".a") or word.endswith(".o"))
    words[archive:archive] = [os.path.join(folder, "mutants.o"), os.path.join(folder, "switch.o")]
    words = [w for w in words if not w.endswith(f"/kernels/{family}.cu.o")]
    subprocess.run(words, cwd=build, check=True)
    return program, chosen


def suites(family):
    """Names of the suites in tests/kernels/<family>*_test.cpp, as a filter."""
    names = set()
    folder = os.path.join(SOURCE, "tests/kernels")
    for name in os.listdir(folder):
        if name.startswith(family) and name.endswith("_test.cpp"):
            names |= set(re.findall(r"TEST(?:_F|_P)?\(\s*(\w+)", open(os.path.join(folder, name)).read()))
    return ":".join(f"*{name}.*" for name in sorted(names)) + ":" + ":".join(f"*{name}/*" for name in sorted(names))


def run(program, chosen_filter, number, timeout_s):
    environment = dict(os.environ, BRISK_MUTANT=str(number), ASAN_OPTIONS="detect_leaks=0")
    try:
        done = subprocess.run([program, f"--gtest_filter={chosen_filter}", "--gtest_fail_fast", "--gtest_brief=1"],
                              env=environment, capture_output=True, text=True, errors="replace", timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return "hangs"
    if done.returncode == 0:
        return ""
    said = re.search(r"AddressSanitizer: [\w-]+|runtime error: .{0,60}|simt: .{0,70}|\[  FAILED  \] \S+", done.stdout + done.stderr)
    return said.group(0) if said else f"exit code {done.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(SOURCE, "build"))
    parser.add_argument("--each", type=int, default=15, help="mutants of each kernel")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", default="simt_asan", help="simt or simt_asan: which build of the emulation")
    parser.add_argument("--timeout", type=float, default=120, help="seconds; longer counts as killed")
    parser.add_argument("families", nargs="*")
    arguments = parser.parse_args()
    build = os.path.abspath(arguments.build)
    families = arguments.families or sorted(f[:-3] for f in os.listdir(os.path.join(SOURCE, "kernels")) if f.endswith(".cu"))
    known = {}
    for line in open(os.path.join(SOURCE, "tests/kernels/mutants.txt")):
        if line.strip() and not line.startswith("#"):
            where, reason = line.strip().split("  ", 1)
            known[where] = reason
    killed = survived = 0
    for family in families:
        program, chosen = compile_family(family, arguments, build, f"brisk_{arguments.target}")
        tests = suites(family)
        if run(program, tests, 0, 10 * arguments.timeout):
            sys.exit(f"{family}: its tests fail without a mutant")
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            results = list(pool.map(lambda s: run(program, tests, s["number"], arguments.timeout), chosen))
        by_kernel = {}
        for site, result in zip(chosen, results):
            line = code_of(open(os.path.join(SOURCE, site["path"])).read().split("\n")[site["line"]]).strip()
            count = by_kernel.setdefault(site["name"], [0, 0])
            count[0 if result else 1] += 1
            if not result:
                where = f"{site['path']}: {site['kind']}: {line}"
                print(f"  survived: {site['path']}:{site['line'] + 1}: {site['kind']}: {line}   {known.get(where, '(no reason known)')}")
        for name, (dead, alive) in sorted(by_kernel.items()):
            print(f"{family}: {name}: {dead} of {dead + alive} killed", flush=True)
            killed += dead
            survived += alive
    share = 100 * killed / max(1, killed + survived)
    print(f"{killed} of {killed + survived} mutants killed, {share:.1f} %")
    return 0 if share >= 95 else 1


if __name__ == "__main__":
    sys.exit(main())
