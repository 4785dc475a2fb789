"""The program brisk: what it prints for machines, and that wrong use ends with 2 and a clear message."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

BRISK = pathlib.Path(os.environ["BRISK_BIN"]) / "brisk"
failures = []


def run(*arguments, **settings):
    return subprocess.run([BRISK, *map(str, arguments)], capture_output=True, text=True, timeout=600, **settings)


def expect(condition, what):
    if not condition:
        failures.append(what)
        print("FAILED", what)


def expect_refused(arguments, *words):
    done = run(*arguments)
    shown = " ".join(map(str, arguments))
    expect(done.returncode == 2, f"{shown}: exit code {done.returncode}, wanted 2")
    text = done.stdout + done.stderr
    for word in words:
        expect(word in text, f"{shown}: no {word!r} in {text!r}")


def bench():
    done = run("bench", "lenet", "--batch", 4, "--seconds", 0.2, "--threads", 2, "--json")
    expect(done.returncode == 0, f"bench: {done.stderr}")
    found = json.loads(done.stdout)
    for name in ("median_ms", "best_ms", "samples_per_s", "isa", "allocations_per_step", "allocations_external",
                 "plan_bytes", "peak_bytes", "first_step_ms"):
        expect(name in found, f"bench: no {name}")
    expect(found["batch"] == 4 and found["threads"] == 2, "bench: batch and threads")
    expect(0 < found["best_ms"] <= found["median_ms"], "bench: times")
    expect(abs(found["samples_per_s"] * found["median_ms"] - 4000) < 1, "bench: samples_per_s is batch / median")
    expect(found["isa"].startswith("cpu "), f"bench: isa {found['isa']}")
    expect(found["plan_bytes"] > 4 * 431080, "bench: plan_bytes holds the parameters at least")
    expect(found["peak_bytes"] > 0 and found["first_step_ms"] > 0, "bench: peak and first step")
    if found["allocations_per_step"] is not None:  # a sanitizer owns malloc otherwise
        expect(found["allocations_per_step"] == 0, f"bench: {found['allocations_per_step']} allocations a step")
    variant = run("bench", "lenet", "--channels", "19,51", "--input", "27x29", "--kernel", 3, "--batch", 3, "--seconds", 0, "--json")
    expect(variant.returncode == 0, f"bench of a variant: {variant.stderr}")
    expect(json.loads(variant.stdout)["steps"] == 3, "bench: three steps at least")
    small = {"mlp": [], "resnet8": [], "resnet9": ["--channels", 4], "resnet18_cifar": ["--channels", 4],
             "resnet50": ["--channels", 4, "--input", "48x40"]}
    for model, settings in small.items():
        other = run("bench", model, *settings, "--batch", 2, "--seconds", 0)
        expect(other.returncode == 0 and "median_ms" in other.stdout, f"bench {model}: {other.stderr}")


def bench_predictions():
    done = run("bench", "lenet", "--predict", "--callers", 3, "--seconds", 0.2, "--json")
    expect(done.returncode == 0, f"bench --predict: {done.stderr}")
    found = json.loads(done.stdout)
    expect(found["batch"] == 1 and found["threads"] == 1 and found["callers"] == 3, "bench --predict: defaults")
    expect(1 <= found["concurrency"] <= 3, f"bench --predict: concurrency {found['concurrency']}")
    expect(0 < found["best_us"] <= found["p50_us"] <= found["p99_us"], "bench --predict: latencies")
    expect(abs(found["gflop_per_s"] / found["samples_per_s"] - 4.6e-3) < 1e-4, "bench --predict: 4.6 MFLOP a sample")
    expect(found["bytes"] > 4 * 431080, "bench --predict: bytes hold the parameters at least")
    if found["allocations_per_call"] is not None:  # a sanitizer owns malloc otherwise
        expect(found["allocations_per_call"] == 0, f"bench --predict: {found['allocations_per_call']} allocations a call")
    expect_refused(["bench", "lenet", "--predict", "--callers", 0], "--callers 0")
    expect_refused(["bench", "lenet", "--predict", "--batch", 0], "batches")


def plan():
    text = run("plan", "lenet", "--batch", 4)
    expect(text.returncode == 0 and "conv1" in text.stdout, f"plan: {text.stdout} {text.stderr}")
    found = json.loads(run("plan", "lenet", "--batch", 4, "--json").stdout)
    parts = found["bytes"]
    total = sum(parts[name] for name in ("activations", "buffers", "gradients", "moments", "parameters", "scratch"))
    expect(parts["total"] == total, f"plan: {parts}")
    expect(any("conv2" in step["op"] for step in found["steps"]), "plan: steps")
    expect(run("plan", "lenet", "--dot").stdout.startswith("digraph"), "plan: dot")
    expect("conv2d" in run("plan", "lenet", "--dump", "trace").stdout, "plan: dump")


def train():
    with tempfile.TemporaryDirectory() as folder:
        done = run("train", "mlp", "--data", "digits", "--epochs", 0.1, "--channels", 16, "--run-folder", folder, "--svg", "--picture")
        expect(done.returncode == 0, f"train: {done.stdout} {done.stderr}")
        expect("finished: 0.10 epochs" in done.stdout, f"train: {done.stdout}")
        events = [json.loads(line) for line in open(os.path.join(folder, "events.jsonl"), encoding="utf-8")]
        expect([events[0]["type"], events[-1]["type"]] == ["start", "finish"], f"train: {events}")
        expect(os.path.exists(os.path.join(folder, "loss.svg")), "train: loss.svg")
        expect("loss: * train" in done.stdout, "train: picture")


def weights():
    with tempfile.TemporaryDirectory() as folder:
        first, renamed = os.path.join(folder, "a.safetensors"), os.path.join(folder, "b.safetensors")
        done = run("train", "mlp", "--data", "digits", "--epochs", 0.01, "--channels", 16, "--save", first)
        expect(done.returncode == 0, f"train --save: {done.stdout} {done.stderr}")
        shown = run("weights", "show", first)
        expect("fc1.weight" in shown.stdout and "[16, 784]" in shown.stdout, f"weights show: {shown.stdout} {shown.stderr}")
        names = [row["name"] for row in json.loads(run("weights", "show", first, "--json").stdout)]
        expect(names == ["fc1.bias", "fc1.weight", "fc2.bias", "fc2.weight"], f"weights show: {names}")
        same = run("weights", "diff", first, first)
        expect(same.returncode == 0 and same.stdout == "0 tensors differ\n", f"weights diff: {same.stdout} {same.stderr}")
        done = run("weights", "rename", first, renamed, "--name", "fc1=net.0", "--name", "fc2=net.2")
        expect(done.returncode == 0, f"weights rename: {done.stderr}")
        other = run("weights", "diff", first, renamed)
        expect(other.returncode == 1 and "8 tensors differ" in other.stdout, f"weights diff: {other.stdout} {other.stderr}")
        for word in ("net.0.weight", "only in the second file", "only in the first file"):
            expect(word in other.stdout, f"weights diff: no {word} in {other.stdout}")
        expect(sorted(os.listdir(folder)) == ["a.safetensors", "b.safetensors"], f"weights: {os.listdir(folder)}")
        expect_refused(["weights", "rename", first, renamed, "--name", "fc1"], "FROM=TO")
        expect_refused(["weights", "rename", first, renamed, "--name", "fc9=a"], "fc9")
        unwritten = run("train", "mlp", "--data", "digits", "--epochs", 0.01, "--save", os.path.join(folder, "no", "a"))
        expect(unwritten.returncode == 1 and "no/a" in unwritten.stderr, f"train --save: {unwritten}")
    expect_refused(["weights"], "subcommand")
    expect_refused(["weights", "show"], "FILE")
    missing = run("weights", "show", "none.safetensors")
    expect(missing.returncode == 1 and "none.safetensors" in missing.stderr, f"weights show: {missing}")


def wrong_use():
    expect_refused([], "subcommand")
    expect_refused(["nonsense"], "nonsense")
    expect_refused(["bench"], "MODEL")
    expect_refused(["bench", "lenett"], "lenett", "lenet, mlp, resnet8, resnet9, resnet18_cifar, resnet50")
    expect_refused(["plan", "alexnet"], "lenet, mlp, resnet8, resnet9, resnet18_cifar, resnet50")
    expect_refused(["bench", "lenet", "--batch", 0], "batch")
    expect_refused(["bench", "lenet", "--batch", "many"], "many")
    expect_refused(["bench", "lenet", "--precision", "f8"], "f32")
    expect_refused(["bench", "lenet", "--precision", "bf16"], "precision")
    expect_refused(["bench", "lenet", "--threads", -1], "threads")
    expect_refused(["bench", "lenet", "--seconds", "nan"], "seconds")
    expect_refused(["bench", "lenet", "--input", "27"], "27x29")
    expect_refused(["bench", "lenet", "--channels", "19"], "two numbers")
    expect_refused(["bench", "lenet", "--unknown"], "--unknown")
    expect_refused(["plan", "lenet", "--dump", "nonsense"], "nonsense", "trace")
    expect_refused(["plan", "lenet", "--dot", "--json"], "--")
    expect_refused(["train", "lenet", "--learning-rate", "nan", "--data", "digits"], "nan")
    expect_refused(["train", "lenet", "--epochs", 0, "--data", "digits"], "duration")
    expect_refused(["train", "lenet", "--svg"], "--run-folder")
    missing = run("train", "lenet", "--data", os.path.join("no", "such", "folder"))
    expect(missing.returncode == 1 and "no/such/folder" in missing.stderr, f"missing data: {missing}")
    expect(run("--help").returncode == 0 and run("--version").returncode == 0, "help and version")


def lost_output():
    """What cannot be written ends with 1, unless standard output was closed on purpose."""
    for arguments in (["plan", "lenet"], ["plan", "lenet", "--json"], ["--help"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([BRISK, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=600)
        expect(done.returncode == 1 and "standard output" in done.stderr, f"{arguments} to a full disk: {done}")
        closed = subprocess.run(["sh", "-c", '"$@" >&-', "sh", BRISK, *arguments], timeout=600)
        expect(closed.returncode == 0, f"{arguments} to a closed stream: {closed}")


if __name__ == "__main__":
    for part in (bench, bench_predictions, plan, train, weights, wrong_use, lost_output):
        part()
    print("failures:", len(failures))
    sys.exit(1 if failures else 0)
