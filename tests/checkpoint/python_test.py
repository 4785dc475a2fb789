"""Weights between the program brisk and Python: files of either side are read by the other.

Python's side is written here from the format's description, and is also pip's `safetensors` and PyTorch where they are
installed; SKIPPED lines say which are not.
"""

import importlib.util
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

BRISK = pathlib.Path(os.environ["BRISK_BIN"]) / "brisk"


def brisk(*arguments, code=0):
    done = subprocess.run([BRISK, *map(str, arguments)], capture_output=True, text=True, timeout=600)
    if done.returncode != code:
        raise AssertionError(f"brisk {arguments}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def read(path):
    """{name: (dtype, shape, bytes)} and the metadata; checks what a careful reader would."""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    assert length % 8 == 0, "the data is not aligned"
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    buffer, reached, tensors = data[8 + length :], 0, {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        assert begin == reached, f"{name} begins at {begin}, wanted {reached}"
        tensors[name] = (entry["dtype"], entry["shape"], buffer[begin:end])
        reached = end
    assert reached == len(buffer), "bytes that belong to no tensor"
    return tensors, metadata


def write(path, tensors):
    header, buffer = {}, b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(buffer), len(buffer) + len(data)]}
        buffer += data
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + buffer)


def own_reader(path):
    tensors, metadata = read(path)
    assert metadata["format"] == "pt", metadata
    listed = json.loads(brisk("weights", "show", path, "--json"))
    assert {row["name"]: (row["dtype"], row["shape"]) for row in listed} == {n: t[:2] for n, t in tensors.items()}
    for name, (dtype, shape, data) in tensors.items():
        count = 1
        for size in shape:
            count *= size
        width = {"F32": 4, "I64": 8}[dtype]
        assert len(data) == count * width, name
        if dtype == "F32":
            assert any(data) or "bias" in name or "running_mean" in name, f"{name} is all zeros"
    return tensors


def own_writer(folder, tensors):
    """Half, bfloat and double twins of one tensor are equal to it where its values are exact in all of them."""
    values = [0.5, -2.0, 0.0, 1.5, -0.25, 6.0]
    kinds = {"F64": "<6d", "F32": "<6f", "F16": "<6e"}
    paths = {kind: folder / f"{kind}.safetensors" for kind in kinds}
    for kind, layout in kinds.items():
        write(paths[kind], {"w": (kind, [2, 3], struct.pack(layout, *values))})
    brain = b"".join(struct.pack("<f", value)[2:] for value in values)
    write(folder / "BF16.safetensors", {"w": ("BF16", [2, 3], brain)})
    for kind in ("F64", "F16", "BF16"):
        assert "0 tensors differ" in brisk("weights", "diff", folder / f"{kind}.safetensors", paths["F32"]), kind
    write(folder / "other.safetensors", {"w": ("F32", [2, 3], struct.pack("<6f", *values[:5], 6.5))})
    assert "up to 0.5" in brisk("weights", "diff", folder / "other.safetensors", paths["F32"], code=1)
    again = folder / "again.safetensors"
    write(again, tensors)  # another order of the tensors and no padding: the same weights
    renamed = folder / "renamed.safetensors"
    brisk("weights", "rename", again, renamed, "--name", "=net")
    assert {f"net.{name}": tensor for name, tensor in tensors.items()} == read(renamed)[0]


def reference(folder, path):
    if importlib.util.find_spec("safetensors") is None or importlib.util.find_spec("numpy") is None:
        print("SKIPPED: pip's safetensors or numpy is not installed")
        return
    from safetensors.numpy import load_file, save_file
    found = load_file(path)
    tensors, metadata = read(path)
    assert {name: array.tobytes() for name, array in found.items()} == {name: data for name, (_, _, data) in tensors.items()}
    copy = folder / "reference.safetensors"
    save_file(found, copy, metadata)
    assert read(copy) == (tensors, metadata), "the reference writes it otherwise"
    assert "0 tensors differ" in brisk("weights", "diff", copy, path)


def strict_torch(path):
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("safetensors") is None:
        print("SKIPPED: PyTorch is not installed")
        return
    import safetensors.torch
    import torch

    class Lenet(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = torch.nn.Conv2d(1, 3, 3)
            self.conv2 = torch.nn.Conv2d(3, 5, 3)
            self.fc1 = torch.nn.Linear(5 * 5 * 5, 500)
            self.fc2 = torch.nn.Linear(500, 10)

    net = Lenet()
    net.load_state_dict(safetensors.torch.load_file(path), strict=True)
    back = path.parent / "from_torch.safetensors"
    safetensors.torch.save_file(net.state_dict(), back)
    assert "0 tensors differ" in brisk("weights", "diff", back, path)
    pickled = path.parent / "net.pt"
    torch.save(net.state_dict(), pickled)
    assert "safetensors.torch.save_file" in brisk("weights", "show", pickled, code=1)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = folder / "lenet.safetensors"
        brisk("train", "lenet", "--channels", "3,5", "--kernel", 3, "--data", "digits", "--epochs", 0.004, "--save", path)
        tensors = own_reader(path)
        own_writer(folder, tensors)
        reference(folder, path)
        strict_torch(path)
    print("weights went to Python and back")


if __name__ == "__main__":
    sys.exit(main())
