"""Golden numbers from PyTorch: training trajectories (trajectories.safetensors) and single operations (ops.json).

usage: make_golden.py [--folder FOLDER] [--only trajectories|ops]

A trajectory is 50 updates of a small network, run in double precision from float32 weights and batches that counter.py
makes. The file holds what a float32 run is held against: losses, sampled parameters, batch-norm statistics, and how far
PyTorch's own float32 run ends from the double one. README.md describes both files.
"""

import argparse
import json
import os
import warnings

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.numpy import save_file

import counter
import op_cases

BATCH, CLASSES, QUOTA, RUNS, UPDATES = 16, 10, 256, 3, 50
SNAPSHOTS = (1, UPDATES)  # parameters are recorded after these updates


class LeNet(nn.Module):
    shape = (1, 28, 28)

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 20, 5), nn.Conv2d(20, 50, 5)
        self.fc1, self.fc2 = nn.Linear(800, 500), nn.Linear(500, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(16, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32)
        self.conv2, self.bn2 = nn.Conv2d(32, 32, 3, 1, 1, bias=False), nn.BatchNorm2d(32)
        self.downsample = nn.Sequential(nn.Conv2d(16, 32, 1, 2, bias=False), nn.BatchNorm2d(32))

    def forward(self, x):
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.downsample(x))


class Residual(nn.Module):
    shape = (3, 8, 8)

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        self.layer1, self.fc = nn.Sequential(Block()), nn.Linear(32, 10)

    def forward(self, x):
        x = self.layer1(F.relu(self.bn1(self.conv1(x))))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


NETWORKS = {"lenet": LeNet, "residual": Residual}
OPTIMIZERS = {
    "sgd": {"learning_rate": 0.05, "momentum": 0.9, "weight_decay": 5e-4},
    "adamw": {"betas": [0.9, 0.999], "epsilon": 1e-8, "learning_rate": 1e-3, "weight_decay": 0.01},
}


def make_optimizer(kind, parameters):
    o = OPTIMIZERS[kind]
    if kind == "sgd":
        return torch.optim.SGD(parameters, o["learning_rate"], o["momentum"], weight_decay=o["weight_decay"])
    return torch.optim.AdamW(parameters, o["learning_rate"], tuple(o["betas"]), o["epsilon"], o["weight_decay"])


def layout(model):
    """Parameters in module order, each with the rule of its initial values: uniform within a bound, ones or zeros."""
    modules, rows = dict(model.named_modules()), []
    for name, p in model.named_parameters():
        module, leaf = modules[name.rpartition(".")[0]], name.rpartition(".")[2]
        if isinstance(module, nn.BatchNorm2d):
            init = {"weight": "ones", "bias": "zeros"}[leaf]
            rows.append({"init": init, "name": name, "shape": list(p.shape)})
        else:
            rows.append({"fan_in": module.weight[0].numel(), "init": "uniform", "name": name, "shape": list(p.shape)})
    return rows


def initial(rows, seed):
    values = []
    for place, row in enumerate(rows):
        count = int(np.prod(row["shape"]))
        if row["init"] == "uniform":
            bound = counter.fan_in_bound(row["fan_in"])
            flat = counter.uniform(seed, counter.PARAMETER_STREAM + place, count, bound)
        else:
            flat = np.full(count, 1.0 if row["init"] == "ones" else 0.0, np.float32)
        values.append(flat.reshape(row["shape"]))
    return values


def sample(values):
    flat = [np.asarray(v, np.float64).reshape(-1) for v in values]
    return np.concatenate([v[counter.sampled(place, v.size, QUOTA)] for place, v in enumerate(flat)])


def batch_of(shape, seed, update):
    x = counter.uniform(seed, counter.INPUT_STREAM + update, BATCH * int(np.prod(shape)), 1.0)
    y = counter.labels(seed, counter.LABEL_STREAM + update, BATCH, CLASSES)
    return torch.from_numpy(x.reshape(BATCH, *shape)), torch.from_numpy(y)


def train(network, kind, seed, dtype, memory_format=torch.contiguous_format, change=lambda v: v):
    """Losses, sampled parameters by update, batch-norm statistics, all as float64 arrays."""
    model = NETWORKS[network]()
    with torch.no_grad():
        for p, v in zip(model.parameters(), initial(layout(model), seed)):
            p.copy_(torch.from_numpy(change(v)))
    model = model.to(dtype).to(memory_format=memory_format).train()
    optimizer = make_optimizer(kind, model.parameters())
    losses, snapshots = [], {}
    for update in range(UPDATES):
        x, y = batch_of(model.shape, seed, update)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x.to(dtype).contiguous(memory_format=memory_format)), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if update + 1 in SNAPSHOTS:
            snapshots[update + 1] = sample([p.detach().numpy() for p in model.parameters()])
    return np.array(losses), snapshots, statistics_of(model)


def distance(value, wanted, start):
    """How far a run ended from the double one, in units of how far the double one went."""
    return float(np.linalg.norm(value - wanted) / np.linalg.norm(wanted - start))


def steady(network, kind, seed, wanted, start):
    """Whether float32 runs of this trajectory agree on their distance from the double one.

    Where a relu's input or two rivals of a pooling window lie within rounding of each other, one run takes one branch
    and the next the other, and from there on the distance is luck (1e-1 against 1e-6). Such seeds are left out: runs
    with other convolution algorithms and with initial weights moved by a last place must stay within three times of
    each other.
    """
    rng = np.random.default_rng(seed)

    def nudge(v):
        return np.nextafter(v, v + rng.integers(-1, 2, v.shape).astype(np.float32))

    ends = []
    for options in [{}, {"memory_format": torch.channels_last}] + [{"change": nudge}] * 6:
        ends.append(train(network, kind, seed, torch.float32, **options)[1][UPDATES])
    with torch.backends.mkldnn.flags(enabled=False):
        ends.append(train(network, kind, seed, torch.float32)[1][UPDATES])
    distances = [distance(end, wanted, start) for end in ends]
    return max(distances) < 3 * min(distances)


def statistics_of(model):
    """Batch-norm statistics, flat, in module order."""
    rows = [b.numpy().astype(np.float64) for b in model.buffers() if b.dim() == 1]
    return np.concatenate(rows) if rows else np.zeros(0)


def trajectory(network, kind, seed, rows):
    """The tensors of one run, or None where the seed is not steady."""
    start = sample(initial(rows, seed))
    losses, wanted, statistics = train(network, kind, seed, torch.float64)
    if not steady(network, kind, seed, wanted[UPDATES], start):
        print(f"{network}/{kind}/{seed}: left out, the distance of a float32 run is luck", flush=True)
        return None
    losses32, got, statistics32 = train(network, kind, seed, torch.float32)
    own = [distance(got[u], wanted[u], start) for u in SNAPSHOTS] + [float(np.abs(losses32 - losses).max())]
    run = {"first": wanted[1], "last": wanted[UPDATES], "losses": losses}
    if statistics.size:
        own.append(distance(statistics32, statistics, statistics_of(NETWORKS[network]())))
        run["statistics"] = statistics
    run["pytorch"] = np.array(own)
    print(
        f"{network}/{kind}/{seed}: loss {losses[0]:.3f} -> {losses[-1]:.3f}; PyTorch's float32 distance after 1 update",
        f"{own[0]:.2e}, after {UPDATES} {own[1]:.2e}; losses, statistics:",
        *(f"{d:.1e}" for d in own[2:]),
        flush=True,
    )
    return run


def trajectories(path):
    tensors, networks, seeds = {}, {}, {}
    for network, make in NETWORKS.items():
        model = make()
        rows = layout(model)
        buffers = [{"name": n, "shape": list(b.shape)} for n, b in model.named_buffers() if b.dim() == 1]
        networks[network] = {"buffers": buffers, "input": list(make.shape), "parameters": rows}
        for kind in OPTIMIZERS:
            seeds.setdefault(network, {})[kind] = chosen = []
            seed = 0
            while len(chosen) < RUNS:
                seed += 1
                run = trajectory(network, kind, seed, rows)
                if run:
                    chosen.append(seed)
                    tensors.update({f"{network}/{kind}/{seed}/{name}": value for name, value in run.items()})
    about = {
        "batch": BATCH,
        "classes": CLASSES,
        "networks": networks,
        "optimizers": OPTIMIZERS,
        "quota": QUOTA,
        "seeds": seeds,
        "updates": UPDATES,
    }
    save_file(tensors, path, {"about": json.dumps(about, separators=(",", ":")), "torch": torch.__version__})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", default=os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--only", choices=["trajectories", "ops"])
    chosen = parser.parse_args()
    torch.set_num_threads(2)
    warnings.filterwarnings(
        "ignore", message="TF32"
    )  # said whenever oneDNN is switched off; nothing here runs on a GPU
    if chosen.only != "ops":
        trajectories(os.path.join(chosen.folder, "trajectories.safetensors"))
    if chosen.only != "trajectories":
        op_cases.write(os.path.join(chosen.folder, "ops.json"))


if __name__ == "__main__":
    main()
