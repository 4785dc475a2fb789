"""One training step of PyTorch, timed: what `brisk bench` does, done by the other side.

usage: torch_step.py NET --batch N --mode MODE [--seconds S] [--threads T]

Prints one JSON line: median_ms, best_ms, samples_per_s, steps, peak_bytes (how far the process grew from where the imports
left it, at most). Inputs are synthetic and held in memory, SGD has rate
0.01, momentum 0.9 and weight decay 5e-4 on every parameter (fused), and the loss is read once a run, so that neither
data loading nor logging is measured. Modes: f32, f32_cl (channels last), each with _compile (torch.compile) at its end.
"""

import argparse
import json
import resource
import time
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 20, 5), nn.Conv2d(20, 50, 5)
        self.fc1, self.fc2 = nn.Linear(800, 500), nn.Linear(500, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


class Basic(nn.Module):
    def __init__(self, inputs, channels, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels)
        self.conv2, self.bn2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels)
        self.downsample = nn.Identity()
        if stride != 1 or inputs != channels:
            shortcut = nn.Conv2d(inputs, channels, 1, stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(channels))

    def forward(self, x):
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.downsample(x))


class ResNet18Cifar(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1, inputs, blocks = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), 64, []
        for channels, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
            blocks.append(Basic(inputs, channels, stride))
            inputs = channels
        self.blocks, self.fc = nn.Sequential(*blocks), nn.Linear(512, 10)

    def forward(self, x):
        x = self.blocks(F.relu(self.bn1(self.conv1(x))))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


def vision(name):
    """torchvision's network of that name, for 1000 classes."""

    def make():
        import torchvision

        return getattr(torchvision.models, name)()

    return make


NETWORKS = {
    "lenet": (LeNet, (1, 28, 28), 10),
    "resnet18_cifar": (ResNet18Cifar, (3, 32, 32), 10),
    "resnet50": (vision("resnet50"), (3, 224, 224), 1000),
    "mobilenet_v2": (vision("mobilenet_v2"), (3, 224, 224), 1000),
    "efficientnet_b0": (vision("efficientnet_b0"), (3, 224, 224), 1000),
}
MODES = ("f32", "f32_cl", "f32_compile", "f32_cl_compile", "bf16_cl", "fp16_cl", "fp16_cl_compile")
LOW = {"bf16": torch.bfloat16, "fp16": torch.float16}  # autocast, fp16 with a GradScaler; meant for GPUs
WARM_UP_STEPS = 5


def resident_bytes():
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * resource.getpagesize()


def make_step(network, batch, mode, device):
    """A function without arguments that trains once and returns the loss, unread."""
    make, shape, classes = NETWORKS[network]
    layout = torch.channels_last if "_cl" in mode else torch.contiguous_format
    model = make().train().to(device, memory_format=layout)
    x = torch.randn(batch, *shape, device=device).contiguous(memory_format=layout)
    y = torch.randint(0, classes, (batch,), device=device)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, 0.9, weight_decay=5e-4, fused=True)
    forward = torch.compile(model) if mode.endswith("_compile") else model
    low = LOW.get(mode.split("_", maxsplit=1)[0])
    scaler = torch.amp.GradScaler(device, enabled=low is torch.float16)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, low, enabled=low is not None):
            loss = F.cross_entropy(forward(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    return step


def measure(step, seconds, burst, finish):
    """Seconds of a step, sorted; `burst` steps are timed together and followed by one finish()."""
    for _ in range(WARM_UP_STEPS):
        step()
    finish()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        for _ in range(burst):
            loss = step()
        finish()
        times.append((time.perf_counter() - start) / burst)
    if not torch.isfinite(loss):
        raise SystemExit("the loss is not finite")
    return sorted(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("network", choices=NETWORKS)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--mode", choices=MODES, default="f32")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--threads", type=int, default=0, help="0: PyTorch's default")
    chosen = parser.parse_args()
    if chosen.threads > 0:
        torch.set_num_threads(chosen.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(0)
    before = resident_bytes()
    on_gpu = chosen.device == "cuda"
    step = make_step(chosen.network, chosen.batch, chosen.mode, chosen.device)
    times = measure(step, chosen.seconds, 20 if on_gpu else 1, torch.cuda.synchronize if on_gpu else lambda: None)
    median = times[len(times) // 2]
    print(
        json.dumps(
            {
                "best_ms": times[0] * 1e3,
                "median_ms": median * 1e3,
                "mode": chosen.mode,
                "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before,
                "samples_per_s": chosen.batch / median,
                "steps": len(times),
                "threads": torch.get_num_threads(),
                "torch": torch.__version__,
            }
        )
    )


if __name__ == "__main__":
    main()
