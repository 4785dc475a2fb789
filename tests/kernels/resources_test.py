#!/usr/bin/env python3
"""What ptxas reports of each kernel and architecture against the line beside the kernel:

    // resources: softmax_rows: registers <= 48, static shared <= 64 bytes
    // resources: gemm_kernel 128x64: registers <= 176, static shared <= 0 bytes

The second form is for one tile of a matrix kernel ("f32": of the kernel without Tensor Cores).
No kernel spills or has local memory; none is without its line; each is there for each architecture of the build.
"""
import glob
import os
import re
import subprocess
import sys

ARCHITECTURES = {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90a"}
ENTRY = re.compile(r"Compiling entry function '(\S+)' for '(\S+)'(.*?)(?=Compiling entry function|\Z)", re.S)


def stated(source):
    lines = {}
    for path in glob.glob(os.path.join(source, "kernels", "**", "*.cu"), recursive=True) + \
            glob.glob(os.path.join(source, "kernels", "**", "*.h"), recursive=True):
        for name, registers, shared in re.findall(
                r"// resources: (\w+(?: \w+)?): registers <= (\d+), static shared <= (\d+) bytes", open(path).read()):
            lines[name] = (int(registers), int(shared))
    return lines


def kernel_name(mangled):
    name = subprocess.run(["c++filt", "-p", mangled], capture_output=True, text=True, check=True).stdout.strip()
    name = re.sub(r"^(?:void|int) ", "", re.sub(r"\(anonymous namespace\)::", "", name))
    base = re.split(r"[<(]", name)[0].split("::")[-1]
    tile = re.search(r"TensorCores<\w+, (\d+), (\d+),|(Lanes)<", name)
    if not tile:
        return base
    return f"{base} f32" if tile.group(3) else f"{base} {tile.group(1)}x{tile.group(2)}"


def main():
    source, build = os.environ["BRISK_SOURCE"], os.path.dirname(os.environ["BRISK_BIN"])
    reports = glob.glob(os.path.join(build, "**", "*.ptxas"), recursive=True)
    if not reports:
        print("SKIPPED: this build has no CUDA kernels, so there is no report of ptxas")
        return 77
    limits, seen, failures = stated(source), {}, []
    for report in reports:
        for mangled, architecture, text in ENTRY.findall(open(report).read()):
            name = kernel_name(mangled)
            seen.setdefault(name, set()).add(architecture)
            numbers = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", text)
            used = re.search(r"Used (\d+) registers", text)
            shared = re.search(r"(\d+) bytes smem", text)
            at = f"{name} on {architecture} ({mangled})"
            if not numbers or not used:
                failures.append(f"{at}: the report cannot be read: {text[:200]}")
                continue
            if any(int(n) for n in numbers.groups()):
                failures.append(f"{at}: {numbers.group(0)}")
            if name not in limits:
                failures.append(f"{at}: no line '// resources: {name}: registers <= R, static shared <= S bytes'")
                continue
            if int(used.group(1)) > limits[name][0]:
                failures.append(f"{at}: {used.group(1)} registers, stated are {limits[name][0]}")
            if shared and int(shared.group(1)) > limits[name][1]:
                failures.append(f"{at}: {shared.group(1)} bytes of static shared memory, stated are {limits[name][1]}")
    built = set().union(*seen.values()) if seen else set()
    full = ARCHITECTURES <= built
    for name in sorted(limits):
        if name not in seen:
            failures.append(f"{name} has a line, but no kernel of that name was compiled")
        elif full and not ARCHITECTURES <= seen[name]:
            print(f"{name}: only for {', '.join(sorted(seen[name]))}")
    if not seen:
        failures.append("the reports name no kernel")
    print(f"{len(seen)} kernels on {', '.join(sorted(built))}")
    for failure in failures:
        print("FAILED", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
