"""The products of device_benchmark as PyTorch computes them on the GPU here: a line each.

usage: torch_kernels.py [f16|bf16|f32]
"""

import statistics
import sys

import torch

BURSTS, CALLS = 7, 10


def seconds_of(call):
    times = []
    for burst in range(BURSTS + 1):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(CALLS):
            call()
        end.record()
        end.synchronize()
        if burst > 0:
            times.append(start.elapsed_time(end) * 1e-3 / CALLS)
    return statistics.median(times)


def report(what, dtype, flops, call):
    seconds = seconds_of(call)
    print(f"{what:<44} {dtype:<5} {seconds * 1e6:10.1f} us {flops / seconds * 1e-12:8.1f} TFLOP/s", flush=True)


def main():
    if not torch.cuda.is_available():
        raise SystemExit("torch_kernels.py: PyTorch sees no GPU here")
    name = sys.argv[1] if len(sys.argv) > 1 else "f16"
    dtype = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}[name]
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for m, n, k in ((4096,) * 3, (8192,) * 3, (1024,) * 3, (64, 500, 800)):
        a, b = (torch.rand(rows, k, device="cuda").to(dtype) for rows in (m, n))
        report(f"linear {m} x {k} -> {n}", name, 2 * m * n * k, lambda a=a, b=b: torch.nn.functional.linear(a, b))
    for batch, channels, size in ((128, 64, 56), (128, 128, 28), (128, 256, 14), (128, 512, 7)):
        x = torch.rand(batch, channels, size, size, device="cuda").to(dtype).contiguous(memory_format=torch.channels_last)
        w = torch.rand(channels, channels, 3, 3, device="cuda").to(dtype).contiguous(memory_format=torch.channels_last)
        flops, sizes = 18 * batch * size * size * channels * channels, f"{batch} x {channels} x {size}^2"
        wanted = {"forward": None, "data gradient": [True, False, False], "weight gradient": [False, True, False]}
        for part, mask in wanted.items():
            if mask is None:
                call = lambda x=x, w=w: torch.nn.functional.conv2d(x, w, padding=1)  # noqa: E731
            else:
                call = lambda x=x, w=w, mask=mask: torch.ops.aten.convolution_backward(  # noqa: E731
                    x, x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, mask)
            report(f"conv 3x3 {part} {sizes}", name, flops, call)


if __name__ == "__main__":
    main()
