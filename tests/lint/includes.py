"""Includes run one way: core <- graph <- backend/backend.h <- passes <- exec <- train, and what stands beside them.

A layer is a folder of src/. ALLOWED says which layers a file of a layer may include besides its own; "backend.h" is the
seam alone. A public header belongs to the lowest layer that carries out what it declares (OWNER) and counts as that layer.
"""

import re
import sys

import lint

ALLOWED = {
    "core": [],
    "graph": ["core"],
    "optim": ["core", "graph"],
    "backend.h": ["core", "graph"],
    "registry": ["core", "graph", "backend.h", "backend"],
    "backend": ["core", "graph", "backend.h", "kernels"],
    "passes": ["core", "graph", "backend.h", "optim"],
    "exec": ["core", "graph", "backend.h", "optim", "passes"],
    "train": ["core", "graph", "backend.h", "optim", "passes", "exec", "data", "checkpoint", "dist", "monitor", "tune"],
    "data": ["core", "backend.h"],
    "checkpoint": ["core", "graph", "optim", "backend.h"],
    "dist": ["core", "backend.h"],
    "monitor": ["core", "backend.h"],
    "tune": ["core", "graph", "backend.h", "optim", "passes", "exec"],
    "models": [],
    "cli": ["core"],
    "kernels": ["core"],
}
# Layers that stand outside: they are users of the public API and may include any public header.
USERS = ("models", "cli")
OWNER = {
    "error.h": "core", "export.h": "core", "feed.h": "core", "field.h": "core", "tensor.h": "core", "eigen.h": "core", "log.h": "core",
    "model.h": "graph", "loss.h": "graph", "op.h": "graph", "ops.h": "graph", "precision.h": "graph",
    "schedule.h": "optim", "optimizer.h": "optim",
    "device.h": "exec", "plan.h": "exec", "step.h": "exec", "predictor.h": "exec",
    "data.h": "data", "augment.h": "data", "images.h": "data", "loader.h": "data", "tabular.h": "data", "checkpoint.h": "checkpoint", "dist.h": "dist", "monitor.h": "monitor",
    "callback.h": "train", "early_stop.h": "train", "trainer.h": "train", "tune.h": "tune", "models.h": "models", "kernels.h": "kernels",
    "weights.h": "checkpoint",
}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


def layer_of(path):
    """The layer of src/<path>, or None."""
    if path == "backend/backend.h":
        return "backend.h"
    if path == "backend/registry.cpp":
        return "registry"
    first = path.split("/")[0]
    return first if first in ALLOWED else None


def layer_of_public(path):
    if path.startswith("brisk/ops/"):
        return "graph"
    if path.startswith("brisk/kernels/"):
        return "kernels"
    return OWNER.get(path[len("brisk/"):])


def check_include(where, layer, header):
    if header == "brisk/brisk.h":
        return [] if layer in USERS else [f"{where}: the umbrella header is for users; include the header of the noun"]
    public = header.startswith("brisk/")
    target = layer_of_public(header) if public else layer_of(header)
    if target is None:
        return [f'{where}: "{header}" belongs to no known layer; write it from src/, or name its layer in this script']
    if target == layer or target in ALLOWED[layer] or (public and layer in USERS):
        return []
    return [f'{where}: {layer} may not see {target} ("{header}")']


def check(tree):
    found = []
    for path in lint.files(tree, ("src",)):
        name = lint.name(tree, path)
        layer = layer_of(name[len("src/"):])
        if layer is None:
            found.append(f"{name}:1: this folder is no known layer; name it in tests/lint/includes.py")
            continue
        for number, line in enumerate(lint.lines(path), 1):
            match = INCLUDE.match(line)
            if match:
                found += check_include(f"{name}:{number}", layer, match.group(1))
    for path in lint.files(tree, ("include",)):
        name = lint.name(tree, path)
        for number, line in enumerate(lint.lines(path), 1):
            match = INCLUDE.match(line)
            if match and not match.group(1).startswith("brisk/"):
                found.append(f'{name}:{number}: a public header may not see "{match.group(1)}"')
    return found


CLEAN = {
    "src/core/pool.h": '#include "brisk/error.h"\n',
    "src/graph/graph.h": '#include "core/pool.h"\n#include "brisk/ops/convolution.h"\n',
    "src/backend/backend.h": '#include "graph/graph.h"\n',
    "src/backend/registry.cpp": '#include "backend/cpu/cpu.h"\n',
    "src/passes/fuse.cpp": '#include "backend/backend.h"\n',
    "src/models/lenet.cpp": '#include "brisk/brisk.h"\n',
    "include/brisk/tensor.h": '#include "brisk/error.h"\n',
}
PLANTED = [
    ({"src/core/a.cpp": '#include "graph/graph.h"\n'}, ["src/core/a.cpp:1", "core may not see graph"]),
    ({"src/graph/a.cpp": '\n#include "brisk/trainer.h"\n'}, ["src/graph/a.cpp:2", "graph may not see train"]),
    ({"src/passes/a.cpp": '#include "backend/cpu/cpu.h"\n'}, ["passes may not see backend"]),
    ({"src/passes/a.cpp": '#include "exec/plan.h"\n'}, ["passes may not see exec"]),
    ({"src/data/a.cpp": '#include "graph/graph.h"\n'}, ["data may not see graph"]),
    ({"src/models/a.cpp": '#include "core/pool.h"\n'}, ["models may not see core"]),
    ({"src/exec/a.cpp": '#include "brisk/brisk.h"\n'}, ["umbrella"]),
    ({"src/exec/a.cpp": '#include "pool.h"\n'}, ["no known layer"]),
    ({"src/misc/a.cpp": "\n"}, ["no known layer"]),
    ({"include/brisk/a.h": '#include "core/pool.h"\n'}, ["include/brisk/a.h:1", "public header"]),
]

if __name__ == "__main__":
    sys.exit(lint.main(check, PLANTED, CLEAN))
