"""The program brisk: what it prints for machines, and that wrong use ends with 2 and a clear message."""

import json
import math
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import zlib

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
             "resnet50": ["--channels", 4, "--input", "48x40"], "mobilenet_v2": ["--input", "33x31"],
             "efficientnet_b0": ["--input", "33x31"]}
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


def plan_for_gpus():
    """On any machine: kernels, bytes, FLOPs and modelled time by the table of devices."""
    totals = {}
    for target in ("h200", "h100", "a100", "t4"):
        done = run("plan", "resnet9", "--batch", 64, "--device", "cuda", "--target", target, "--json")
        expect(done.returncode == 0, f"plan {target}: {done.stderr}")
        found = json.loads(done.stdout)
        expect(target in found["isa"], f"plan {target}: {found['isa']}")
        for whole, part in (("launches", "launches"), ("microseconds", "microseconds")):
            parts = sum(step[part] for step in found["steps"])
            expect(math.isclose(found[whole], parts, rel_tol=1e-9), f"plan {target}: {whole} {found[whole]} of {parts}")
        expect(all(step["microseconds"] >= 2 * step["launches"] for step in found["steps"]), f"plan {target}: 2 us a launch")
        totals[target] = found["microseconds"]
    expect(totals["h200"] < totals["h100"] < totals["a100"] < totals["t4"], f"plan: modelled times {totals}")
    lenet = json.loads(run("plan", "lenet", "--device", "cuda", "--target", "h200", "--json").stdout)
    expect(0 < lenet["launches"] <= 40, f"plan: LeNet's step has {lenet['launches']} launches")
    text = run("plan", "lenet", "--device", "cuda", "--target", "h200").stdout
    expect("cuda h200 (sm_90a)" in text and "modelled" in text, f"plan: {text}")
    done = run("plan", "mobilenet_v2", "--device", "cuda")
    expect(done.returncode == 1 and "its kernels have no groups" in done.stderr, f"plan of groups: {done.stderr}")


def train():
    with tempfile.TemporaryDirectory() as folder:
        done = run("train", "mlp", "--data", "digits", "--epochs", 0.1, "--channels", 16, "--run-folder", folder, "--svg", "--picture")
        expect(done.returncode == 0, f"train: {done.stdout} {done.stderr}")
        expect("finished: 0.10 epochs" in done.stdout, f"train: {done.stdout}")
        events = [json.loads(line) for line in open(os.path.join(folder, "events.jsonl"), encoding="utf-8")]
        expect([events[0]["type"], events[-1]["type"]] == ["start", "finish"], f"train: {events}")
        expect(os.path.exists(os.path.join(folder, "loss.svg")), "train: loss.svg")
        expect("loss: * train" in done.stdout, "train: picture")


def stopped():
    """SIGTERM ends a run after the update at hand: its weights are saved."""
    with tempfile.TemporaryDirectory() as folder:
        saved = os.path.join(folder, "weights.safetensors")
        command = [BRISK, "train", "mlp", "--data", "digits", "--epochs", "100000", "--channels", "16", "--save", saved]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                if line.startswith("epoch "):
                    break
            process.send_signal(signal.SIGTERM)
            rest = process.communicate(timeout=600)[0]
        expect(process.returncode == 143, f"train after SIGTERM: exit code {process.returncode}")
        expect("\nsignal: " in "\n" + rest and "SIGTERM" in rest, f"train after SIGTERM: {rest[-300:]!r}")
        expect(os.path.exists(saved), "train after SIGTERM: no weights")


def models():
    found = json.loads(run("models", "--json").stdout)
    by_name = {row["name"]: row for row in found}
    expect({"lenet", "mlp", "resnet8", "resnet18", "resnet50"} <= set(by_name), f"models: {list(by_name)}")
    # (300 + 1) numbers a unit ... of 784, 300, 100, 10; a multiplication and an addition for each weight.
    mlp = by_name["mlp"]
    expect(mlp["parameters"] == 785 * 300 + 301 * 100 + 101 * 10, f"models: {mlp}")
    expect(mlp["forward_flops"] >= 2 * (784 * 300 + 300 * 100 + 100 * 10), f"models: {mlp}")
    expect(by_name["resnet50"]["parameters"] == 25557032 and by_name["resnet50"]["input"] == [3, 224, 224],
           f"models: {by_name['resnet50']}")
    expect("resnet50" in run("models").stdout, "models: text")


def png(height, width, rgb):
    """A PNG file of one colour."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = (b"\0" + bytes(rgb) * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def image_folders():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        colours = {"blue": (10, 10, 200), "green": (10, 200, 10), "red": (200, 10, 10)}
        for part, count in (("train", 24), ("val", 6)):
            for name, colour in colours.items():
                (root / "set" / part / name).mkdir(parents=True)
                for i in range(count):
                    shade = [value + 2 * i for value in colour]
                    (root / "set" / part / name / f"{i:02}.png").write_bytes(png(40 + i, 50, shade))
        weights = root / "colours.safetensors"
        common = ["--input", "16x16", "--batch", 12, "--learning-rate", 0.02]
        done = run("train", "resnet8", "--data", root / "set", "--epochs", 6, *common, "--workers", 2, "--save", weights)
        if "reads no PNG" in done.stderr:
            return  # built without libpng
        expect(done.returncode == 0 and "accuracy" in done.stdout, f"train on images: {done.stdout} {done.stderr}")
        images = [root / "set" / "val" / name / "03.png" for name in colours]
        found = run("predict", weights, *images)
        lines = [line.split("\t") for line in found.stdout.splitlines()]
        expect([line[:2] for line in lines] == [[str(path), name] for path, name in zip(images, colours)],
               f"predict: {found.stdout} {found.stderr}")
        rows = json.loads(run("predict", weights, images[0].parent, "--json", "--top", 2, "--batch", 4).stdout)
        expect([row["input"] for row in rows] == [str(images[0].parent / f"{i:02}.png") for i in range(6)], f"predict: {rows}")
        for row in rows:
            first, second = row["classes"]
            expect(first["class"] == "blue" and first["probability"] > second["probability"], f"predict: {row}")
        expect(abs(sum(c["probability"] for c in json.loads(run("predict", weights, images[0], "--json", "--top", 9).stdout)
                       [0]["classes"]) - 1) < 1e-6, "predict: probabilities")

        # One damaged file: named, or replaced when that is asked for.
        bad = root / "set" / "train" / "green" / "05.png"
        bad.write_bytes(bad.read_bytes()[:60])
        failed = run("train", "resnet8", "--data", root / "set", "--epochs", 1, *common)
        expect(failed.returncode == 1 and str(bad) in failed.stderr, f"damaged image: {failed}")
        skipped = run("train", "resnet8", "--data", root / "set", "--epochs", 1, *common, "--skip-corrupt", 0.05)
        expect(skipped.returncode == 0 and "1 images" in skipped.stdout and str(bad) in skipped.stdout, f"skipped: {skipped}")
        # Without val/ a share of the images is held out.
        split = run("train", "resnet8", "--data", root / "set" / "val", "--epochs", 1, *common, "--validation", 0.5)
        expect(split.returncode == 0 and "accuracy" in split.stdout, f"split: {split}")
        expect_refused(["train", "resnet8", "--data", root / "set" / "val", "--validation", 1], "--validation")
        (root / "set" / "val" / "red").rename(root / "set" / "val" / "rot")
        other = run("train", "resnet8", "--data", root / "set", *common)
        expect(other.returncode == 1 and "other classes" in other.stderr, f"other classes: {other}")


def tables():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        table, weights = root / "points.csv", root / "points.safetensors"
        rows = [(math.sin(1.7 * i), math.cos(0.9 * i)) for i in range(400)]
        lines = ["id,x,y,sum,side"] + [f"{i},{x},{y},{1000 + 50 * x - 20 * y},{int(x > 0)}" for i, (x, y) in enumerate(rows)]
        table.write_text("\n".join(lines) + "\n")
        common = ["--data", table, "--batch", 20, "--epochs", 30, "--channels", 16, "--save", weights]
        done = run("train", *common, "--target", "sum", "--ignore", "id,side")
        if "no CSV reader" in done.stderr:
            return
        expect(done.returncode == 0 and "accuracy" not in done.stdout, f"train on a table: {done.stdout} {done.stderr}")
        found = run("predict", weights, table)
        values = found.stdout.splitlines()
        expect(values[0] == "sum" and len(values) == 401, f"predict: {found.stdout[:200]} {found.stderr}")
        worst = max(abs(float(value) - (1000 + 50 * x - 20 * y)) for value, (x, y) in zip(values[1:], rows))
        expect(worst < 20, f"predict: off by {worst}")
        found = json.loads(run("predict", weights, table, "--json").stdout)
        expect(found[7]["input"] == 8 and abs(found[7]["values"]["sum"] - float(values[8])) < 1e-3, f"predict: {found[7]}")

        done = run("train", "mlp", *common, "--target", "side", "--classes", "--ignore", "id,sum")
        expect(done.returncode == 0 and "accuracy" in done.stdout, f"train on classes: {done.stdout} {done.stderr}")
        lines = run("predict", weights, table).stdout.splitlines()
        right = sum(line.split("\t")[:2] == [str(i + 1), str(int(x > 0))] for i, (line, (x, y)) in enumerate(zip(lines, rows)))
        expect(right > 380, f"predict: {right} of 400")
        expect_refused(["train", "--data", table], "--target")
        expect_refused(["train", "resnet8", "--data", table, "--target", "sum"], "mlp")
        expect_refused(["train", "--data", table, "--target", "price"], "price", "side")


def predict_refuses():
    with tempfile.TemporaryDirectory() as folder:
        weights = os.path.join(folder, "a.safetensors")
        done = run("train", "mlp", "--data", "digits", "--epochs", 0.01, "--channels", 16, "--save", weights)
        expect(done.returncode == 0, f"train --save: {done}")
        missing = run("predict", weights, "no/such.png")
        expect(missing.returncode == 1 and "no/such.png" in missing.stderr and missing.stdout == "", f"predict: {missing}")
        other = os.path.join(folder, "b.safetensors")
        header = b'{"__metadata__":{"format":"pt"}}'
        pathlib.Path(other).write_bytes(struct.pack("<Q", len(header)) + header)
        unknown = run("predict", other, "x.png")
        expect(unknown.returncode == 1 and "brisk train --save" in unknown.stderr, f"predict: {unknown}")
        header = b'{"__metadata__":{"brisk.model":"{}"}}'
        pathlib.Path(other).write_bytes(struct.pack("<Q", len(header)) + header)
        damaged = run("predict", other, "x.png")
        expect(damaged.returncode == 1 and "damaged" in damaged.stderr, f"predict: {damaged}")
    expect_refused(["predict"], "WEIGHTS")
    expect_refused(["predict", "a.safetensors"], "INPUT")


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
    expect_refused(["bench", "lenett"], "lenett", "lenet, mlp, resnet8, resnet9")
    expect_refused(["plan", "alexnet"], "lenet, mlp, resnet8, resnet9")
    expect_refused(["plan", "mobilenet_v2", "--channels", 8], "--channels 8")
    expect_refused(["bench", "lenet", "--batch", 0], "--batch = 0")
    expect_refused(["train", "lenet", "--data", "digits", "--workers", -1], "--workers")
    expect_refused(["bench", "lenet", "--batch", "many"], "many")
    expect_refused(["bench", "lenet", "--precision", "f8"], "f32")
    expect_refused(["bench", "lenet", "--device", "tpu"], "tpu")
    expect_refused(["bench", "lenet", "--predict", "--device", "cuda"], "PredictorOptions.device = gpu 0")
    expect_refused(["bench", "lenet", "--threads", -1], "threads")
    expect_refused(["bench", "lenet", "--seconds", "nan"], "seconds")
    expect_refused(["bench", "lenet", "--input", "27"], "27x29")
    expect_refused(["bench", "lenet", "--channels", "19"], "two numbers")
    expect_refused(["bench", "lenet", "--unknown"], "--unknown")
    expect_refused(["plan", "lenet", "--dump", "nonsense"], "nonsense", "trace")
    expect_refused(["plan", "lenet", "--dot", "--json"], "--")
    expect_refused(["plan", "lenet", "--device", "cuda", "--target", "v100"], "v100", "h200, h100, a100")
    expect_refused(["plan", "lenet", "--device", "tpu"], "tpu", "cpu and cuda")
    expect_refused(["plan", "lenet", "--target", "h200"], "--target h200", "--device cuda")
    expect_refused(["train", "lenet", "--learning-rate", "nan", "--data", "digits"], "nan")
    expect_refused(["train", "lenet", "--epochs", 0, "--data", "digits"], "--epochs = 0")
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
    for part in (bench, bench_predictions, plan, plan_for_gpus, models, train, stopped, image_folders, tables, predict_refuses,
                 weights, wrong_use, lost_output):
        part()
    print("failures:", len(failures))
    sys.exit(1 if failures else 0)
