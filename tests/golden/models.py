"""Golden numbers of the model zoo (models.json): what PyTorch computes for each network at reduced width.

usage: models.py [--folder FOLDER]

Every network is given weights and a batch from counter.py and run in double precision: logits in evaluation, then one
update by SGD in training. Where torchvision has the network, its own classes are used, or the plain one below is first
held to torchvision's names and shapes at full width. models.json: see README.md.
"""

import argparse
import functools
import json
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision.models as vision
from torchvision.models.efficientnet import _efficientnet_conf
from torchvision.models.resnet import BasicBlock, Bottleneck

import counter

BATCH, CLASSES, RATE = 4, 10, 0.01
# Where a relu's input lies within rounding of zero, runs take different branches, whoever computes, and the distance is
# luck. Of the seeds 1, 2, ... these are the first on which all of PyTorch's float32 runs stay near the double one; 1 if
# not named.
SEEDS = {"resnet9": 11, "resnet18_cifar": 3, "resnet18": 4, "resnet50": 7, "mobilenet_v2": 7, "efficientnet_b0": 2}
PARAMETER, INPUT, LABEL, PROBE = 1, 5000, 5001, 6000  # streams; PARAMETER and PROBE + place


def conv_bn(inputs, channels, kernel=3, stride=1):
    return nn.Conv2d(inputs, channels, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(channels)


class ResNet(vision.ResNet):
    """torchvision's, with a first stage of `width` channels instead of 64, and the form for 32x32 images."""

    def __init__(self, block, layers, width, classes, small=False):
        super().__init__(block, layers, num_classes=classes)
        self.inplanes = width
        self.conv1 = nn.Conv2d(3, width, 3, 1, 1, bias=False) if small else nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        if small:
            self.maxpool = nn.Identity()
        for stage in range(4):
            made = self._make_layer(block, width << stage, layers[stage], stride=2 if stage else 1)
            setattr(self, f"layer{stage + 1}", made)
        self.fc = nn.Linear((width << 3) * block.expansion, classes)


class ResNet9(nn.Module):
    def __init__(self, width, classes):
        super().__init__()

        def stage(inputs, channels):
            conv, bn = conv_bn(inputs, channels)
            return nn.ModuleDict({"conv1": conv, "bn1": bn})

        def residual(channels):
            (conv1, bn1), (conv2, bn2) = conv_bn(channels, channels), conv_bn(channels, channels)
            return nn.ModuleDict({"conv1": conv1, "bn1": bn1, "conv2": conv2, "bn2": bn2})

        self.prep = stage(3, width)
        self.layer1, self.layer2 = stage(width, 2 * width), stage(2 * width, 4 * width)
        self.layer3, self.fc = stage(4 * width, 8 * width), nn.Linear(8 * width, classes, bias=False)
        self.layer1["residual"], self.layer3["residual"] = residual(2 * width), residual(8 * width)

    def forward(self, x):
        def step(layer, x, i=1):
            return F.relu(layer[f"bn{i}"](layer[f"conv{i}"](x)))

        x = step(self.prep, x)
        for layer in (self.layer1, self.layer2, self.layer3):
            x = F.max_pool2d(step(layer, x), 2)
            if "residual" in layer:
                x = x + step(layer["residual"], step(layer["residual"], x), 2)
        return self.fc(F.adaptive_max_pool2d(x, 1).flatten(1)) / 8


class UNet(nn.Module):
    def __init__(self, width, depth, classes):
        super().__init__()

        def double(inputs, channels):
            (conv1, bn1), (conv2, bn2) = conv_bn(inputs, channels), conv_bn(channels, channels)
            return {"conv1": conv1, "bn1": bn1, "conv2": conv2, "bn2": bn2}

        self.depth = depth
        for level in range(depth + 1):
            made = double(3 if level == 0 else width << (level - 1), width << level)
            setattr(self, "bottom" if level == depth else f"down{level + 1}", nn.ModuleDict(made))
        for level in range(depth, 0, -1):
            up = {"upsample": nn.ConvTranspose2d(width << level, width << (level - 1), 2, 2)}
            setattr(self, f"up{level}", nn.ModuleDict({**up, **double(width << level, width << (level - 1))}))
        self.conv1 = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        def double(block, x):
            x = F.relu(block["bn1"](block["conv1"](x)))
            return F.relu(block["bn2"](block["conv2"](x)))

        skips = []
        for level in range(1, self.depth + 1):
            skips.append(double(getattr(self, f"down{level}"), x))
            x = F.max_pool2d(skips[-1], 2)
        x = double(self.bottom, x)
        for level in range(self.depth, 0, -1):
            block = getattr(self, f"up{level}")
            x = double(block, torch.cat([skips[level - 1], block["upsample"](x)], 1))
        return self.conv1(x)


class Autoencoder(nn.Module):
    def __init__(self, width, features, size):
        super().__init__()
        self.small = (2 * width, size // 4, size // 4)
        flat = int(np.prod(self.small))
        encoder = {"conv1": nn.Conv2d(3, width, 3, 2, 1), "conv2": nn.Conv2d(width, 2 * width, 3, 2, 1)}
        self.encoder = nn.ModuleDict({**encoder, "fc1": nn.Linear(flat, features)})
        decoder = {"fc1": nn.Linear(features, flat), "upsample1": nn.ConvTranspose2d(2 * width, width, 4, 2, 1)}
        self.decoder = nn.ModuleDict({**decoder, "upsample2": nn.ConvTranspose2d(width, 3, 4, 2, 1)})

    def forward(self, x):
        e, d = self.encoder, self.decoder
        x = e["fc1"](F.relu(e["conv2"](F.relu(e["conv1"](x)))).flatten(1))
        x = F.relu(d["fc1"](x)).unflatten(1, self.small)
        return d["upsample2"](F.relu(d["upsample1"](x)))


def efficientnet(variant, width, classes):
    """torchvision's: widths multiplied by `width` on top of the variant's own, without dropout and stochastic depth."""
    scales = {"b0": (1.0, 1.0), "b1": (1.0, 1.1), "b2": (1.1, 1.2), "b3": (1.2, 1.4), "b4": (1.4, 1.8)}
    wide, deep = scales[variant]
    setting, last = _efficientnet_conf(f"efficientnet_{variant}", width_mult=wide * width, depth_mult=deep)
    return vision.EfficientNet(setting, 0.0, stochastic_depth_prob=0.0, num_classes=classes, last_channel=last)


basic18, basic34, bottle50, bottle101 = [2, 2, 2, 2], [3, 4, 6, 3], [3, 4, 6, 3], [3, 4, 23, 3]
NETWORKS = {
    # name: (network of a width, reduced width, full width, input size, torchvision's own, every number is recorded)
    "resnet9": (lambda w: ResNet9(w, CLASSES), 8, 64, 32, None, True),
    "resnet18_cifar": (lambda w: ResNet(BasicBlock, basic18, w, CLASSES, small=True), 8, 64, 16, None, True),
    "resnet34_cifar": (lambda w: ResNet(BasicBlock, basic34, w, CLASSES, small=True), 8, 64, 16, None, False),
    "resnet18": (lambda w: ResNet(BasicBlock, basic18, w, CLASSES), 8, 64, 64, vision.resnet18, True),
    "resnet34": (lambda w: ResNet(BasicBlock, basic34, w, CLASSES), 8, 64, 64, vision.resnet34, False),
    "resnet50": (lambda w: ResNet(Bottleneck, bottle50, w, CLASSES), 8, 64, 64, vision.resnet50, True),
    "resnet101": (lambda w: ResNet(Bottleneck, bottle101, w, CLASSES), 8, 64, 64, vision.resnet101, False),
    "mobilenet_v2": (
        lambda w: vision.MobileNetV2(CLASSES, width_mult=w, dropout=0.0),
        0.25,
        1.0,
        64,
        vision.mobilenet_v2,
        True,
    ),
    **{
        f"efficientnet_{b}": (
            functools.partial(efficientnet, b, classes=CLASSES),
            0.25,
            1.0,
            64,
            getattr(vision, f"efficientnet_{b}"),
            b == "b0",
        )
        for b in ("b0", "b1", "b2", "b3", "b4")
    },
    "unet": (lambda w: UNet(w, 3, CLASSES), 8, 64, 32, None, True),
    "autoencoder": (lambda w: Autoencoder(w, 8, 16), 8, 32, 16, None, True),
}


def shapes(model):
    return {name: list(value.shape) for name, value in model.state_dict().items() if value.dim() > 0}


def digest(rows):
    """One number of all names and shapes, in whatever order: FNV-1a of the sorted lines "name [2, 3]"."""
    value = 0xCBF29CE484222325
    for line in sorted(f"{name} {shape}" for name, shape in rows.items()):
        for byte in (line + "\n").encode():
            value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def check_full_width(name, make, full, own):
    """Names and shapes at full width, held to torchvision's (but for the number of classes)."""
    with torch.device("meta"):
        model, rows = make(full), shapes(make(full))
        if own is not None:
            theirs = shapes(own(num_classes=CLASSES))
            assert theirs == rows, name
        return {"digest": digest(rows), "parameters": sum(p.numel() for p in model.parameters())}


def start(name, shape, place, seed):
    """Matrices within sqrt(6 / fan in) (He), vectors around 1 (scales) or 0."""
    count = int(np.prod(shape))
    if len(shape) > 1:
        flat = counter.uniform(seed, PARAMETER + place, count, np.sqrt(6 / np.prod(shape[1:])))
    elif name.endswith("weight"):
        flat = np.float32(1) + counter.uniform(seed, PARAMETER + place, count, 0.25)
    else:
        flat = counter.uniform(seed, PARAMETER + place, count, 0.125)
    return torch.from_numpy(flat.reshape(shape))


def run(make, size, seed, dtype, format=torch.contiguous_format, change=lambda v: v):
    """Evaluation before and outputs, loss and tensors after one update in training, as float64."""
    model = make()
    with torch.no_grad():
        for place, (name, p) in enumerate(model.named_parameters()):
            p.copy_(change(start(name, list(p.shape), place, seed)))
    model = model.to(dtype).to(memory_format=format)
    x = torch.from_numpy(counter.uniform(seed, INPUT, BATCH * 3 * size * size, 1.0).reshape(BATCH, 3, size, size))
    x = x.to(dtype).contiguous(memory_format=format)
    y = torch.from_numpy(counter.labels(seed, LABEL, BATCH, CLASSES))
    with torch.no_grad():
        logits = model.eval()(x)
    out = model.train()(x)
    if out.shape == x.shape:
        loss = F.mse_loss(out, x)
    else:
        loss = F.cross_entropy(out.mean((2, 3)) if out.dim() == 4 else out, y)
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    loss.backward()
    optimizer.step()
    after = {name: v.detach().double().numpy() for name, v in model.state_dict().items() if v.dim() > 0}
    return logits.double().numpy(), loss.item(), after


def probes(model, after, where, seed):
    """(change . probe, its scale) of each tensor: its change in one update against a random direction.

    The scale is ||change||, or a hundredth of the median one: a shift that batch norm takes away moves by rounding only.
    """
    rows = {}
    for place, name in enumerate(n for n, v in model.state_dict().items() if v.dim() > 0):
        change = after[name].reshape(-1) - where(name)
        probe = counter.uniform(seed, PROBE + place, change.size, 1.0).astype(np.float64)
        rows[name] = [float(change @ probe), float(np.linalg.norm(change))]
    least = 0.01 * float(np.median([length for _, length in rows.values()]))
    return {name: (dot, max(length, least)) for name, (dot, length) in rows.items()}


def trial(make, size, seed, whole):
    """Double precision's logits, loss and probes, and how far PyTorch's float32 runs are from them: logits, update.

    Float32 runs: as it is, channels last, and with weights moved by a last place.
    """
    model, rng = make(), np.random.default_rng(seed)
    places = {name: i for i, (name, _) in enumerate(model.named_parameters())}

    def nudge(v):
        return torch.from_numpy(np.nextafter(v.numpy(), v.numpy() + rng.integers(-1, 2, v.shape).astype(np.float32)))

    def where(tensor):
        if tensor in places:
            shape = list(model.state_dict()[tensor].shape)
            return start(tensor, shape, places[tensor], seed).double().numpy().reshape(-1)
        return np.full(model.state_dict()[tensor].numel(), 1.0 if tensor.endswith("var") else 0.0)

    logits, loss, after = run(make, size, seed, torch.float64)
    wanted = probes(model, after, where, seed)
    runs = [{}, {"format": torch.channels_last}] + [{"change": nudge}] * (6 if whole else 0)
    own = [run(make, size, seed, torch.float32, **options) for options in runs]
    far = max(float(np.linalg.norm(o[0] - logits) / np.linalg.norm(logits)) for o in own[:2])
    moved = max(
        float(np.sqrt(np.mean([((got[n][0] - d) / length) ** 2 for n, (d, length) in wanted.items()])))
        for got in (probes(model, o[2], where, seed) for o in own)
    )
    return logits, loss, wanted, far, moved


def entry(name, make, width, size, whole):
    seed = SEEDS.get(name, 1)
    logits, loss, wanted, far, moved = trial(lambda: make(width), size, seed, whole)
    print(f"{name}, seed {seed}: loss {loss:.4f}; float32: logits {far:.1e}, update {moved:.1e}", flush=True)
    model = make(width)
    places = [n for n, _ in model.named_parameters()]
    kept = logits.reshape(-1)[counter.sampled(0, logits.size, 64)]
    row = {"logits": [float(f"{v:.12g}") for v in kept], "loss": loss, "pytorch": [far, moved], "seed": seed, "size": size}
    row["norm"], row["width"] = float(np.linalg.norm(logits) / np.sqrt(logits.size)), width
    state = model.state_dict()
    row["parameters"] = places
    if whole:
        row["tensors"] = [[n, list(state[n].shape), float(f"{d:.10g}"), float(f"{l:.6g}")] for n, (d, l) in wanted.items()]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", default=os.path.dirname(os.path.abspath(__file__)))
    folder = parser.parse_args().folder
    torch.set_num_threads(2)
    rows = {}
    for name, (make, width, full, size, own, whole) in NETWORKS.items():
        rows[name] = {**entry(name, make, width, size, whole), "full": check_full_width(name, make, full, own)}
    about = {"batch": BATCH, "classes": CLASSES, "rate": RATE, "torch": torch.__version__}
    with open(os.path.join(folder, "models.json"), "w") as file:
        file.write(json.dumps({**about, "models": rows}, separators=(",", ":")).replace('"models"', '\n"models"'))
        file.write("\n")


if __name__ == "__main__":
    main()
