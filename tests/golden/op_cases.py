"""Single operations and optimizer steps in double precision, written as ops.json (README.md has the format).

Inputs are multiples of 1/64, so that float32 holds them exactly and the file shows them short.
"""

import json

import numpy as np
import torch
import torch.nn.functional as F

import counter

STREAM = 4000  # inputs: + a number that grows from tensor to tensor


class Draw:
    """Tensors of literal numbers, each from a stream of its own."""

    def __init__(self, stream=STREAM):
        self.stream = stream

    def __call__(self, *shape, low=-2.0, high=2.0):
        self.stream += 1
        unit = (counter.uniform(0, self.stream, int(np.prod(shape)), 1.0).astype(np.float64) + 1) / 2
        return torch.from_numpy(np.round((low + unit * (high - low)) * 64) / 64).reshape(shape)

    def distinct(self, *shape):
        """No two elements equal, so that every pooling window has one largest."""
        self.stream += 1
        order = np.argsort(counter.hashes(0, self.stream, int(np.prod(shape))), kind="stable")
        return torch.from_numpy((order - order.size // 2) / 64.0).reshape(shape)

    def labels(self, count, classes):
        self.stream += 1
        return torch.from_numpy(counter.labels(0, self.stream, count, classes))


def plain(tensor):
    if tensor.dtype == torch.int64:
        return {"dtype": "i64", "shape": list(tensor.shape), "values": tensor.reshape(-1).tolist()}
    return {"shape": list(tensor.shape), "values": [float(f"{v:.14g}") for v in tensor.detach().reshape(-1).tolist()]}


def case(name, op, function, inputs, draw, attributes=None, fixed=(), cotangent=None):
    """Runs function(**inputs): the output, or outputs whose "y" is differentiated. Inputs in `fixed` get no gradient."""
    leaves = {k: v.clone() for k, v in inputs.items()}
    moving = [k for k, v in leaves.items() if v.dtype == torch.float64 and k not in fixed]
    for k in moving:
        leaves[k].requires_grad_()
    out = function(**leaves)
    outputs = out if isinstance(out, dict) else {"y": out}
    y = outputs["y"]
    cotangent = cotangent if cotangent is not None else draw(*y.shape, low=-1.0, high=1.0)
    gradients = torch.autograd.grad(y, [leaves[k] for k in moving], cotangent)
    return {
        "name": name,
        "op": op,
        "attributes": attributes or {},
        "inputs": {k: plain(v) for k, v in inputs.items()},
        "outputs": {k: plain(v) for k, v in outputs.items()},
        "cotangent": plain(cotangent),
        "gradients": {k: plain(g) for k, g in zip(moving, gradients)},
    }


def convolutions(draw):
    def conv(name, x, channels, kernel, bias=True, **attributes):
        kh, kw = (kernel, kernel) if isinstance(kernel, int) else kernel
        inputs = {
            "x": draw(*x),
            "weight": draw(channels, x[1] // attributes.get("groups", 1), kh, kw, low=-1.0, high=1.0),
        }
        if bias:
            inputs["bias"] = draw(channels)

        def run(x, weight, bias=None):
            return F.conv2d(x, weight, bias, **attributes)

        return case(
            "conv2d_" + name,
            "conv2d",
            run,
            inputs,
            draw,
            {"bias": bias, "channels": channels, "kernel": kernel, **attributes},
        )

    yield conv("plain", (2, 2, 5, 4), 3, 3)
    yield conv("no_bias", (1, 3, 4, 5), 2, 2, bias=False)
    yield conv("1x1", (2, 3, 2, 3), 4, 1)
    yield conv("stride_padding", (2, 2, 5, 6), 2, 3, stride=2, padding=1)
    yield conv("stride_leaves_a_rest", (1, 1, 6, 7), 2, 3, stride=3)
    yield conv("dilation", (1, 2, 7, 6), 2, 3, padding=1, dilation=2)
    yield conv("groups", (2, 4, 4, 3), 6, 3, padding=1, groups=2)
    yield conv("depthwise", (2, 3, 5, 5), 3, 3, stride=2, padding=2, dilation=2, groups=3)
    yield conv("not_square", (1, 2, 5, 6), 2, [3, 2], stride=[1, 2], padding=[1, 0])
    yield case(
        "linear", "linear", F.linear, {"x": draw(4, 5), "weight": draw(3, 5), "bias": draw(3)}, draw, {"channels": 3}
    )


def transposed_convolutions(draw):
    def conv(name, x, channels, kernel, bias=True, **attributes):
        kh, kw = (kernel, kernel) if isinstance(kernel, int) else kernel
        inputs = {
            "x": draw(*x),
            "weight": draw(x[1], channels // attributes.get("groups", 1), kh, kw, low=-1.0, high=1.0),
        }
        if bias:
            inputs["bias"] = draw(channels)

        def run(x, weight, bias=None):
            return F.conv_transpose2d(x, weight, bias, **attributes)

        return case(
            "conv_transpose2d_" + name,
            "conv_transpose2d",
            run,
            inputs,
            draw,
            {"bias": bias, "channels": channels, "kernel": kernel, **attributes},
        )

    yield conv("plain", (2, 2, 3, 4), 3, 3)
    yield conv("dcgan", (2, 3, 2, 3), 2, 4, bias=False, stride=2, padding=1)
    yield conv("output_padding", (1, 2, 3, 3), 2, 3, stride=2, padding=1, output_padding=1)
    yield conv("dilation", (1, 2, 4, 3), 2, [3, 2], dilation=[2, 1], padding=[1, 0])
    yield conv("groups", (2, 4, 3, 2), 6, 2, stride=[2, 1], groups=2)
    yield conv("depthwise", (1, 3, 3, 4), 3, 3, stride=2, padding=1, groups=3)


def resizes(draw):
    def resize(name, x, size=None, scale=None, mode="nearest", align_corners=False):
        keys = {"mode": mode} if mode == "nearest" else {"mode": mode, "align_corners": align_corners}

        def run(x):
            return F.interpolate(x, size=size, scale_factor=scale, **keys)

        attributes = {"size": size} if size else {"scale": scale}
        attributes |= {"bilinear": mode == "bilinear", "align_corners": align_corners}
        return case(f"resize2d_{mode}_{name}", "resize2d", run, {"x": x}, draw, attributes)

    for mode in ("nearest", "bilinear"):
        yield resize("twofold", draw(2, 2, 3, 2), scale=2.0, mode=mode)
        yield resize("scale_rounds_down", draw(1, 2, 5, 3), scale=1.5, mode=mode)
        yield resize("size", draw(1, 2, 3, 5), size=[7, 4], mode=mode)
        yield resize("reduced", draw(2, 1, 7, 6), size=[2, 3], mode=mode)
    yield resize("aligned", draw(1, 2, 3, 4), size=[5, 7], mode="bilinear", align_corners=True)
    yield resize("aligned_to_one", draw(1, 1, 3, 4), size=[1, 2], mode="bilinear", align_corners=True)


def pools(draw):
    def run(kind, name, x, **attributes):
        function = {"max_pool2d": F.max_pool2d, "avg_pool2d": F.avg_pool2d}[kind]
        keys = {
            "kernel_size": attributes["kernel"],
            "stride": attributes.get("stride", attributes["kernel"]),
            "padding": attributes.get("padding", 0),
        }
        return case(f"{kind}_{name}", kind, lambda x: function(x, **keys), {"x": x}, draw, attributes)

    for kind in ("max_pool2d", "avg_pool2d"):
        yield run(kind, "2", draw.distinct(2, 2, 4, 6), kernel=2)
        yield run(kind, "drops_the_rest", draw.distinct(1, 2, 5, 7), kernel=2)
        yield run(kind, "overlapping_padded", draw.distinct(2, 1, 6, 5), kernel=3, padding=1, stride=2)
        yield run(kind, "stride_1", draw.distinct(1, 2, 4, 4), kernel=3, stride=1)
    yield run("max_pool2d", "ties_go_to_the_first", torch.ones(1, 1, 4, 4, dtype=torch.float64), kernel=2)
    yield run(
        "max_pool2d", "padding_never_wins", draw(1, 1, 4, 4, low=-4.0, high=-1.0), kernel=3, padding=1, stride=2
    )
    yield case(
        "global_avg_pool2d",
        "global_avg_pool2d",
        lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1),
        {"x": draw(2, 3, 3, 4)},
        draw,
    )


def normalizations(draw):
    def norm(name, shape, training, epsilon=1e-5, momentum=0.1, spread=2.0):
        channels = shape[1]
        inputs = {
            "x": draw(*shape, low=-spread, high=spread),
            "weight": draw(channels, low=0.5, high=1.5),
            "bias": draw(channels),
            "running_mean": draw(channels),
            "running_var": draw(channels, low=0.5, high=2),
        }

        def run(x, weight, bias, running_mean, running_var):
            y = F.batch_norm(x, running_mean, running_var, weight, bias, training, momentum, epsilon)
            return {"y": y, "running_mean": running_mean, "running_var": running_var}

        return case(
            "batch_norm_" + name,
            "batch_norm",
            run,
            inputs,
            draw,
            {"epsilon": epsilon, "momentum": momentum, "training": training},
            ("running_mean", "running_var"),
        )

    yield norm("train", (3, 2, 2, 3), True)
    yield norm("train_rows", (5, 3), True)
    yield norm("train_options", (2, 3, 3, 2), True, 1e-3, 0.3)
    yield norm("train_small_variance", (4, 2, 1, 2), True, spread=1 / 16)
    yield norm("evaluate", (3, 2, 2, 3), False)
    yield norm("evaluate_rows", (4, 3), False, 1e-3)


def elementwise(draw):
    x = draw(4, 6)
    x[0, 0] = 0.0  # relu's corner: its derivative there is 0
    yield case("relu", "relu", torch.relu, {"x": x}, draw)
    yield case("tanh", "tanh", torch.tanh, {"x": draw(4, 6, low=-6.0, high=6.0)}, draw)
    yield case("sigmoid", "sigmoid", torch.sigmoid, {"x": draw(4, 6, low=-12.0, high=12.0)}, draw)
    yield case("exp", "exp", torch.exp, {"x": draw(4, 6, low=-5.0, high=5.0)}, draw)
    yield case("log", "log", torch.log, {"x": draw(4, 6, low=0.1, high=9.0)}, draw)
    for name, function in (("softmax", F.softmax), ("log_softmax", F.log_softmax)):
        yield case(name, name, lambda x, f=function: f(x, 1), {"x": draw(4, 5)}, draw, {"axis": 1})
        yield case(
            name + "_large",
            name,
            lambda x, f=function: f(x, 1),
            {"x": draw(3, 4, low=-300.0, high=300.0)},
            draw,
            {"axis": 1},
        )


def functions(draw):
    def of_one(name, function, within=4.0, op=None, corners=(), **attributes):
        low, high = within if isinstance(within, tuple) else (-within, within)
        x = draw(4, 6, low=low, high=high)
        x[0, : len(corners)] = torch.tensor(corners, dtype=torch.float64)
        return case(name, op or name, lambda x: function(x), {"x": x}, draw, attributes)

    yield of_one("leaky_relu", lambda x: F.leaky_relu(x, 0.2), corners=(0.0,), slope=0.2)
    yield of_one("elu", lambda x: F.elu(x, 1.5), corners=(0.0,), alpha=1.5)
    yield of_one("gelu", F.gelu, 6.0)
    yield of_one("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), 6.0)
    yield of_one("silu", F.silu, 9.0)
    yield of_one("softplus", F.softplus, 9.0)
    yield of_one("sqrt", torch.sqrt, (0.1, 9.0))
    yield of_one("abs", torch.abs, corners=(0.0,))
    yield of_one("clamp", lambda x: torch.clamp(x, -1.0, 2.0), corners=(-1.0, 2.0), low=-1.0, high=2.0)
    for exponent in (0.0, 1.0, 2.0, 3.0, 4.0):
        yield of_one(f"pow_{exponent:g}", lambda x, e=exponent: x**e, 2.0, "pow", (0.0, -1.0), exponent=exponent)
    for i, exponent in enumerate((0.5, -1.0, -1.5, 2.7)):
        yield of_one(f"pow_positive_{i}", lambda x, e=exponent: x**e, (0.3, 3.0), "pow", exponent=exponent)

    def of_two(name, function):
        x, other = draw(4, 6), draw(4, 6)
        other[1] = x[1]  # equal ones
        return case(name, name, lambda x, other: function(x, other), {"x": x, "other": other}, draw)

    yield of_two("minimum", torch.minimum)
    yield of_two("maximum", torch.maximum)
    yield of_two("where", lambda x, other: torch.where(x < other, x * other, x - other))
    yield of_two("stop_gradient", lambda x, other: x * other.detach() + other * (x >= 0.5).double())


def losses(draw):
    one = torch.tensor(1.0, dtype=torch.float64)

    def entropy(name, ignored=(), weighted=False, low=-3.0, high=3.0, **attributes):
        y = draw.labels(6, 4)
        for row in ignored:
            y[row] = attributes["ignore_index"]
        inputs = {"x": draw(6, 4, low=low, high=high), "target": y}
        if weighted:
            inputs["class_weights"] = draw(4, low=0.25, high=2.0)

        def run(x, target, class_weights=None):
            return F.cross_entropy(x, target, class_weights, **attributes)

        return case("cross_entropy_" + name, "cross_entropy", run, inputs, draw, attributes, ("class_weights",), one)

    yield entropy("plain")
    yield entropy("large", low=-200.0, high=200.0)
    yield entropy("smoothing", label_smoothing=0.1)
    yield entropy("ignore", ignored=(1, 4), ignore_index=-1)
    yield entropy("ignore_a_class", ignored=(0,), ignore_index=2)
    yield entropy("weights", weighted=True)
    yield entropy("smoothing_ignore", ignored=(0, 3), ignore_index=-1, label_smoothing=0.1)
    yield entropy("smoothing_weights", weighted=True, label_smoothing=0.1)
    yield entropy("ignore_weights", ignored=(2,), weighted=True, ignore_index=-1)
    yield entropy("smoothing_ignore_weights", ignored=(5, 1), weighted=True, ignore_index=-1, label_smoothing=0.1)

    def regression(name, op, function, shape, **attributes):
        inputs = {"x": draw(*shape), "target": draw(*shape)}
        inputs["target"][0] = inputs["x"][0]  # an error of zero
        return case(
            name, op, lambda x, target: function(x, target, **attributes), inputs, draw, attributes, ("target",), one
        )

    yield regression("mse", "mse", F.mse_loss, (5, 3))
    yield regression("mse_one_column", "mse", F.mse_loss, (7, 1))
    yield regression("huber", "huber", F.huber_loss, (5, 3), delta=1.0)
    yield regression("huber_delta", "huber", F.huber_loss, (6, 2), delta=0.25)


def more_losses(draw):
    one = torch.tensor(1.0, dtype=torch.float64)

    def loss(name, op, function, x, target, **attributes):
        inputs = {"x": x, "target": target}
        return case(name, op, lambda x, target: function(x, target), inputs, draw, attributes, ("target",), one)

    def shares(*shape):
        t = draw(*shape, low=0.0, high=1.0)
        t[0, 0], t[0, 1] = 0.0, 1.0
        return t

    def bce(x, target, pos_weight=1.0):
        return F.binary_cross_entropy_with_logits(x, target, pos_weight=torch.tensor(pos_weight, dtype=torch.float64))

    x = draw(5, 3)
    x[1, 1] = 0.0
    same = draw(5, 3)
    same[0] = x[0]  # distances of zero
    yield loss("l1", "l1", F.l1_loss, x, same)
    yield loss("bce_with_logits", "bce_with_logits", bce, x, shares(5, 3))
    yield loss("bce_with_logits_large", "bce_with_logits", bce, draw(6, 2, low=-200.0, high=200.0), shares(6, 2))
    for suffix, weight in (("none", 0.0), ("more", 2.5)):
        yield loss(
            "bce_with_logits_pos_weight_" + suffix,
            "bce_with_logits",
            lambda x, t, w=weight: bce(x, t, w),
            draw(4, 3),
            shares(4, 3),
            pos_weight=weight,
        )
    for suffix, number in (("zero", 0.0), ("between", 0.75), ("one", 1.0)):
        yield loss(
            "bce_with_logits_number_" + suffix,
            "bce_with_logits_number",
            lambda x, t, n=number: bce(x, torch.full_like(x, n), 1.5),
            draw(4, 2),
            draw(4, 2),
            number=number,
            pos_weight=1.5,
        )
    yield loss(
        "kl_divergence",
        "kl_divergence",
        lambda x, t: F.kl_div(x, t, reduction="batchmean"),
        draw(4, 5, low=-4.0, high=0.0),
        shares(4, 5),
    )
    for suffix, margin in (("small", 0.5), ("large", 3.0)):
        yield loss(
            "triplet_margin_" + suffix,
            "triplet_margin",
            lambda x, t, m=margin: F.triplet_margin_loss(x, t, t * -0.5 + 0.25, margin=m),
            draw(6, 4),
            draw(6, 4),
            margin=margin,
        )
    for suffix, smoothing in (("", 0.0), ("_smoothing", 0.2)):
        yield loss(
            "cross_entropy_probabilities" + suffix,
            "cross_entropy",
            lambda x, t, s=smoothing: F.cross_entropy(x, t, label_smoothing=s),
            draw(5, 4),
            shares(5, 4),
            label_smoothing=smoothing,
        )
    weights = draw(4, low=0.25, high=2.0)
    weighted = {"x": draw(5, 4), "target": shares(5, 4), "class_weights": weights}

    def entropy(x, target, class_weights):
        return F.cross_entropy(x, target, class_weights, label_smoothing=0.1)

    yield case(
        "cross_entropy_probabilities_weights",
        "cross_entropy",
        entropy,
        weighted,
        draw,
        {"label_smoothing": 0.1},
        ("target", "class_weights"),
        one,
    )


def within_samples(draw):
    """Normalisation of each sample by itself, dimensions in another order, frames, indices."""

    def layer(name, shape, dims, epsilon=1e-5):
        inputs = {"x": draw(*shape), "weight": draw(*shape[-dims:], low=0.5, high=1.5), "bias": draw(*shape[-dims:])}

        def run(x, weight, bias):
            return F.layer_norm(x, shape[-dims:], weight, bias, epsilon)

        return case("layer_norm_" + name, "layer_norm", run, inputs, draw, {"dims": dims, "epsilon": epsilon})

    yield layer("features", (3, 7), 1)
    yield layer("tokens", (2, 3, 5), 1, 1e-3)
    yield layer("image", (2, 2, 3, 4), 3)

    def group(name, shape, groups):
        inputs = {"x": draw(*shape), "weight": draw(shape[1], low=0.5, high=1.5), "bias": draw(shape[1])}

        def run(x, weight, bias):
            return F.group_norm(x, groups, weight, bias, 1e-5)

        return case("group_norm_" + name, "group_norm", run, inputs, draw, {"epsilon": 1e-5, "groups": groups})

    yield group("pairs", (2, 6, 2, 3), 3)
    yield group("one", (3, 4, 2), 1)
    yield group("instance", (2, 3, 2, 2), 3)

    def permuted(name, shape, axes):
        return case("permute_" + name, "permute", lambda x: x.permute(axes), {"x": draw(*shape)}, draw, {"axes": axes})

    yield permuted("channels_first", (2, 3, 4, 2), [0, 3, 1, 2])
    yield permuted("heads", (2, 2, 3, 2, 2), [0, 3, 1, 2, 4])

    def padded(name, shape, left, right, top, bottom, value):
        sizes = (left, right, top, bottom)
        attributes = {"bottom": bottom, "left": left, "right": right, "top": top, "value": value}
        return case("pad_" + name, "pad", lambda x: F.pad(x, sizes, value=value), {"x": draw(*shape)}, draw, attributes)

    yield padded("image", (2, 2, 3, 2), 1, 2, 0, 3, 0.0)
    yield padded("value", (1, 2, 2), 2, 0, 1, 1, -0.5)

    def picked(name, index):
        x = draw(4, 5)

        def run(x, index):
            return torch.gather(x, 1, index.reshape(4, -1)).reshape(index.shape)

        return case("gather_" + name, "gather", run, {"x": x, "index": index}, draw)

    yield picked("one", draw.labels(4, 5))
    yield picked("repeated", draw.labels(12, 5).reshape(4, 3))

    def embedded(name, index):
        inputs = {"x": draw(*index.shape, 2), "weight": draw(6, 2), "index": index}

        def run(x, weight, index):
            return x + F.embedding(index, weight)

        return case("embedding_" + name, "embedding", run, inputs, draw, {"count": 6, "features": 2})

    yield embedded("one", draw.labels(5, 6))
    yield embedded("words", draw.labels(12, 6).reshape(4, 3))


def optimizers(draw):
    rates = [0.1 * 0.5**k for k in range(6)]  # halved at each step

    def trace(name, kind, schedule=None, **options):
        start, steps = draw(5), [draw(5) for _ in range(6)]
        for g in steps:
            g[4] = 0.0  # never a gradient: only the decay may move it
        w = torch.nn.Parameter(start.clone())
        keys = {"learning_rate": "lr", "epsilon": "eps"}
        make = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[kind]
        own = make([w], **{keys.get(k, k): tuple(v) if isinstance(v, list) else v for k, v in options.items()})
        used, after = schedule or [options["learning_rate"]] * 6, []
        for g, rate in zip(steps, used):
            own.param_groups[0]["lr"], w.grad = rate, g.clone()
            own.step()
            after.append(plain(w)["values"])
        return {
            "name": name,
            "kind": kind,
            "options": options,
            "rates": used,
            "start": plain(start)["values"],
            "gradients": [plain(g)["values"] for g in steps],
            "parameters": after,
        }

    yield trace("sgd", "sgd", learning_rate=0.1)
    yield trace("sgd_decay", "sgd", learning_rate=0.1, weight_decay=0.05)
    yield trace("sgd_momentum", "sgd", learning_rate=0.1, momentum=0.9)
    yield trace("sgd_momentum_decay_rates", "sgd", rates, learning_rate=0.1, momentum=0.9, weight_decay=0.05)
    yield trace("sgd_dampening", "sgd", learning_rate=0.1, momentum=0.8, dampening=0.3)
    yield trace("sgd_nesterov", "sgd", learning_rate=0.1, momentum=0.9, nesterov=True)
    yield trace(
        "sgd_nesterov_decay_rates", "sgd", rates, learning_rate=0.1, momentum=0.9, nesterov=True, weight_decay=0.05
    )
    yield trace("adam", "adam", learning_rate=0.1, weight_decay=0.0)
    yield trace("adam_decay", "adam", learning_rate=0.1, weight_decay=0.05)
    yield trace(
        "adam_options_rates", "adam", rates, learning_rate=0.1, betas=[0.5, 0.99], epsilon=1e-3, weight_decay=0.0
    )
    yield trace("adamw", "adamw", learning_rate=0.1, weight_decay=0.01)
    yield trace("adamw_rates", "adamw", rates, learning_rate=0.1, weight_decay=0.2)
    yield trace("adamw_options", "adamw", learning_rate=0.1, betas=[0.8, 0.95], epsilon=1e-2, weight_decay=0.05)


def write(path):
    draw, cases = Draw(), []
    for family in (convolutions, pools, normalizations, elementwise, losses):
        cases += family(draw)
    cases += functions(Draw(STREAM + 1000))
    cases += within_samples(Draw(STREAM + 2000))
    traces = list(optimizers(draw))
    for family in (transposed_convolutions, resizes, more_losses):  # after the others, whose numbers depend on the order
        cases += family(draw)

    def lines(rows):
        return ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)

    with open(path, "w", encoding="utf-8", newline="\n") as out:
        out.write(
            f'{{"torch":"{torch.__version__}","cases":[\n{lines(cases)}\n],"optimizers":[\n{lines(traces)}\n]}}\n'
        )
    print(f"{path}: {len(cases)} cases, {len(traces)} optimizer traces")
