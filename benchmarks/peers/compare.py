"""Measures Brisk and PyTorch in turns on this machine and prints both, with the ratio of their speeds.

usage: compare.py --brisk PROGRAM --python PYTHON [--network lenet] [--batches 4,64,512] [--rounds N] [--seconds S]
                  [--threads T] [--modes f32,f32_cl,f32_compile,f32_cl_compile] [--out FILE]

In each round every contestant runs once, in a process of its own, in an order that is turned round from round to round;
what counts is the median over the rounds. A contestant that fails is reported and the others go on.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TIME_LIMIT_S = 300  # of one run: compiling takes most of it


def processor():
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def run_once(command, threads):
    """The last line of the program's output as JSON, or {"failed": why}."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=TIME_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"failed": str(error)}
    if done.returncode != 0:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()] or [f"exit code {done.returncode}"]
        return {"failed": ([line for line in said if "Error" in line] or said)[-1][:200]}
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        pass
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (json.JSONDecodeError, IndexError):
        return {"failed": "no JSON on standard output"}


def contestants(chosen, batch):
    common = ["--batch", str(batch), "--threads", str(chosen.threads), "--seconds", str(chosen.seconds)]
    commands = {"brisk": [chosen.brisk, "bench", chosen.network, *common, "--precision", "f32", "--json"]}
    for mode in chosen.modes.split(","):
        commands[mode] = [chosen.python, str(HERE / "torch_step.py"), chosen.network, *common, "--mode", mode]
    return commands


def summary(runs):
    failed = [run["failed"] for run in runs if "failed" in run]
    if failed:
        return {"failed": failed[0]}
    middle = {key: statistics.median(run[key] for run in runs) for key in ("median_ms", "samples_per_s")}
    middle["best_ms"] = min(run["best_ms"] for run in runs)
    kept = ("allocations_external", "allocations_per_step", "isa", "peak_bytes", "plan_bytes", "torch")
    return {**middle, **{key: runs[-1][key] for key in kept if key in runs[-1]}}


def compare(chosen, batch):
    commands, runs = contestants(chosen, batch), {}
    for turn in range(chosen.rounds):
        names = list(commands)
        for name in names if turn % 2 == 0 else reversed(names):
            if not any("failed" in run for run in runs.get(name, [])):
                runs.setdefault(name, []).append(run_once(commands[name], chosen.threads))
    row = {"batch": batch, "contestants": {name: summary(runs[name]) for name in commands}, "runs": runs}
    peers = [c["median_ms"] for name, c in row["contestants"].items() if name != "brisk" and "failed" not in c]
    own = row["contestants"]["brisk"]
    row["ratio"] = min(peers) / own["median_ms"] if peers and "failed" not in own else None
    return row


def show(row):
    for name, c in row["contestants"].items():
        head = f"{row['batch']:6d}  {name:16s}"
        if "failed" in c:
            print(f"{head}failed: {c['failed']}")
        else:
            print(f"{head}{c['median_ms']:10.3f}{c['best_ms']:10.3f}{c['samples_per_s']:14,.0f}")
    ratio = row["ratio"]
    print(f"{row['batch']:6d}  brisk / best peer  " + ("not known" if ratio is None else f"{ratio:.2f}x"), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--batches", default="4,64,512")
    parser.add_argument("--brisk", required=True)
    parser.add_argument("--modes", default="f32,f32_cl,f32_compile,f32_cl_compile")
    parser.add_argument("--network", default="lenet")
    parser.add_argument("--out")
    parser.add_argument("--python", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    chosen = parser.parse_args()
    load = os.getloadavg()[0]
    if load > 0.3 * (os.cpu_count() or 1):
        print(f"warning: the machine is busy (load {load:.1f}); the numbers below are worth little", file=sys.stderr)
    machine = {"cores": os.cpu_count(), "load": load, "processor": processor(), "system": platform.platform()}
    print(f"{chosen.network}, {machine['processor']}, {chosen.threads} threads")
    print(f"{chosen.rounds} rounds of {chosen.seconds} s a contestant, medians")
    print(f"{'batch':>6s}  {'who':16s}{'median ms':>10s}{'best ms':>10s}{'samples/s':>14s}")
    rows = []
    for batch in [int(b) for b in chosen.batches.split(",")]:
        rows.append(compare(chosen, batch))
        show(rows[-1])
    if chosen.out:
        options = {key: getattr(chosen, key) for key in ("network", "rounds", "seconds", "threads")}
        text = json.dumps({"machine": machine, "options": options, "rows": rows}, indent=1)
        Path(chosen.out).write_text(text + "\n", encoding="utf-8")
        print(f"written to {chosen.out}")
    return 1 if any("failed" in row["contestants"]["brisk"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
