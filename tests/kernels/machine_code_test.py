#!/usr/bin/env python3
"""The main loop of the matrix kernels as ptxas made it: it has as many HMMAs as the warp's tile needs, no more (nothing is
computed twice) and no fewer (the loop is whole), and where rows begin at multiples of 16 bytes at least 90 % of the global
loads have 128 bits."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cubin  # noqa: E402

FILES = ("gemm", "conv")
ARCHITECTURES = ("80", "90a")
MATH = re.compile(r"TensorCores<(\w+), (\d+), (\d+), (\d+), (\d+), (?:true|false), (?:true|false)>")
# What follows the math in a kernel's name are its two operands; the last argument says that all loads have 16 bytes.
WIDE = re.compile(r"(MatrixOperand|WindowRows|WindowColumns|TapRows)<[^<>]*?(true|false)>")
K_OF_A_TILE = 32


def compile_one(nvcc, source, name, architecture, folder):
    out = os.path.join(folder, f"{name}.{architecture}.cubin")
    subprocess.run([nvcc, "-std=c++20", "-O3", f"-arch=sm_{architecture}", "-cubin", "-I", os.path.join(source, "include"),
                    "-I", source, "-o", out, os.path.join(source, "kernels", f"{name}.cu")], check=True)
    return out


def check(path, architecture, failures):
    kernels = 0
    for mangled, code in cubin.functions(path):
        name = subprocess.run(["c++filt", "-p", mangled], capture_output=True, text=True, check=True).stdout.strip()
        math = MATH.search(name)
        if not math:
            continue
        kernels += 1
        at = f"{os.path.basename(path)}: {name[:200]}"
        loop = cubin.main_loop(code, int(architecture.rstrip("a")))
        warp_m, warp_n = int(math.group(4)), int(math.group(5))
        needed = warp_m // 16 * (warp_n // 8) * (K_OF_A_TILE // 16)
        found = sum(opcode == cubin.HMMA for opcode, _, _ in loop)
        if found != needed:
            failures.append(f"{at}: {found} HMMAs in the main loop, a warp's tile of {warp_m} x {warp_n} x {K_OF_A_TILE} needs {needed}")
        loads = [cubin.load_bytes(high) for opcode, _, high in loop if opcode in (cubin.LDG, cubin.LDGSTS)]
        operands = WIDE.findall(name[math.end():])
        if len(operands) < 2:
            failures.append(f"{at}: its operands cannot be read from its name")
        elif all(wide == "true" for _, wide in operands):
            wide = sum(size == 16 for size in loads)
            if not loads or wide < 0.9 * len(loads):
                failures.append(f"{at}: {wide} of {len(loads)} global loads of the main loop have 128 bits")
    return kernels


def main():
    source = os.environ["BRISK_SOURCE"]
    nvcc = shutil.which("nvcc") or (os.path.exists("/usr/local/cuda/bin/nvcc") and "/usr/local/cuda/bin/nvcc")
    if not nvcc:
        print("SKIPPED: nvcc is not here, so there is no machine code to look at")
        return 77
    failures, kernels = [], 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        made = [(architecture, pool.submit(compile_one, nvcc, source, name, architecture, folder))
                for name in FILES for architecture in ARCHITECTURES]
        for architecture, path in made:
            count = check(path.result(), architecture, failures)
            if count == 0:
                failures.append(f"{os.path.basename(path.result())} has no kernel for Tensor Cores")
            kernels += count
    print(f"{kernels} kernels on sm_{' and sm_'.join(ARCHITECTURES)}")
    for failure in failures:
        print("FAILED", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
