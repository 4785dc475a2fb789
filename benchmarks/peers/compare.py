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
import resource
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUSY = 0.05  # share of the processor that other programs may take
TIME_LIMIT_S = 300  # of one run: compiling takes most of it


class Others:
    """How busy other programs keep the machine, from here on: a peer that waits for its threads loses more than it."""

    def __init__(self):
        self.start = self._now()

    @staticmethod
    def _now():
        ticks = [int(word) for word in Path("/proc/stat").read_text(encoding="utf-8").split("\n")[0].split()[1:9]]
        own = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        idle = ticks[3] + ticks[4]
        second = os.sysconf("SC_CLK_TCK")
        return (sum(ticks) - idle) / second, sum(ticks) / second, sum(use.ru_utime + use.ru_stime for use in own)

    def share(self):
        """Of all processors' time since the start, 0 to 1."""
        busy, whole, own = (after - before for after, before in zip(self._now(), self.start))
        return max(0.0, busy - own) / max(whole, 1e-9)


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
    peers = [c for name, c in row["contestants"].items() if name != "brisk" and "failed" not in c]
    own = row["contestants"]["brisk"]
    for key, of in (("ratio", "median_ms"), ("ratio_of_best", "best_ms")):
        row[key] = min(peer[of] for peer in peers) / own[of] if peers and "failed" not in own else None
    return row


def show(row):
    for name, c in row["contestants"].items():
        head = f"{row['batch']:6d}  {name:16s}"
        if "failed" in c:
            print(f"{head}failed: {c['failed']}")
        else:
            peak = c.get("peak_bytes", 0) / 1e6
            print(f"{head}{c['median_ms']:10.3f}{c['best_ms']:10.3f}{c['samples_per_s']:14,.1f}{peak:10,.0f}")
    ratios = "not known"
    if row["ratio"] is not None:
        ratios = f"{row['ratio']:.2f} times as fast (by the fastest steps: {row['ratio_of_best']:.2f})"
    print(f"{row['batch']:6d}  brisk against the best peer: {ratios}", flush=True)


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
    machine = {"cores": os.cpu_count(), "processor": processor(), "system": platform.platform()}
    others = Others()
    print(f"{chosen.network}, {machine['processor']}, {chosen.threads} threads")
    print(f"{chosen.rounds} rounds of {chosen.seconds} s a contestant, medians")
    print(f"{'batch':>6s}  {'who':16s}{'median ms':>10s}{'best ms':>10s}{'samples/s':>14s}{'peak MB':>10s}")
    rows = []
    for batch in [int(b) for b in chosen.batches.split(",")]:
        rows.append(compare(chosen, batch))
        show(rows[-1])
    machine["others"] = others.share()
    if machine["others"] > BUSY:
        print(
            f"warning: other programs took {machine['others']:.0%} of the processor; these numbers are worth nothing",
            file=sys.stderr,
        )
    if chosen.out:
        options = {key: getattr(chosen, key) for key in ("network", "rounds", "seconds", "threads")}
        text = json.dumps({"machine": machine, "options": options, "rows": rows}, indent=1)
        Path(chosen.out).write_text(text + "\n", encoding="utf-8")
        print(f"written to {chosen.out}")
    return 1 if any("failed" in row["contestants"]["brisk"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
