#!/usr/bin/python3
"""Repeats steps written by torch_steps in PyTorch and compares losses and all variables.

usage: compare_steps.py TORCH_STEPS [--full] [--fp32] [--device DEVICE] [--precision tf32|bf16|fp16] [MODEL ...]
Exit status 1 when a case disagrees.  --device runs each case there; --precision makes ours coarser, with the tolerances of COARSE.
--full takes the cases at full size instead (minutes each, and up to 12 GB of memory):
  python3 tests/torch/compare_steps.py build/tests/torch/torch_steps --full vit

A ReLU near zero or a small Adam moment can amplify one rounding into a visible difference, and on either side, so ours is held
against PyTorch in fp64.  --fp32 prints how far PyTorch in fp32 is from both: from ours at most by the sum of the other two distances.
Losses: relative difference.  Variables: norm of the difference, less what storing the variable in fp32 after every step rounds
away, over the norm of the variable's change since the start.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from models import MODELS  # noqa: E402

DTYPES = {"f32": np.float32, "i32": np.int32}


class Adam:
    """Adam in PyTorch's or TensorFlow's form, and plain SGD with momentum, over a list of named tensors; `clip` is the
    largest norm of all their gradients together."""

    def __init__(self, rule, lr, beta1=0.9, beta2=0.999, eps=1e-8, momentum=0.0, form="torch", clip=None):
        self.rule, self.lr, self.b1, self.b2, self.eps = rule, lr, beta1, beta2, eps
        self.momentum, self.form, self.state, self.t, self.clip = momentum, form, {}, {}, clip

    def step(self, named, group):
        t = self.t[group] = self.t.get(group, 0) + 1
        if self.clip:
            norm = torch.stack([g.norm() for _, _, g in named]).norm()
            named = [(n, w, g * torch.clamp(self.clip / (norm + 1e-6), max=1.0)) for n, w, g in named]
        for name, w, g in named:
            if self.rule == "sgd":
                v = self.state[name] = self.momentum * self.state.get(name, torch.zeros_like(w)) + g
                w.sub_(self.lr * v)
                continue
            m, v = self.state.get(name, (torch.zeros_like(w), torch.zeros_like(w)))
            m, v = self.b1 * m + (1 - self.b1) * g, self.b2 * v + (1 - self.b2) * g * g
            self.state[name] = (m, v)
            if self.form == "tf":
                w.sub_(self.lr * (1 - self.b2 ** t) ** 0.5 / (1 - self.b1 ** t) * m / (v.sqrt() + self.eps))
            else:
                w.sub_(self.lr / (1 - self.b1 ** t) * m / (v.sqrt() / (1 - self.b2 ** t) ** 0.5 + self.eps))


class Record:
    def __init__(self, folder, double=False):
        self.double = double
        with open(os.path.join(folder, "index.json")) as f:
            self.index = json.load(f)
        self.data = os.path.join(folder, "data.bin")

    def get(self, name):
        e = self.index[name]
        n = int(np.prod(e["shape"], dtype=np.int64)) if e["shape"] else 1
        d = np.fromfile(self.data, DTYPES[e["dtype"]], n, offset=e["offset"])
        t = torch.from_numpy(d.reshape(e["shape"]))
        return t.double() if self.double and t.dtype == torch.float32 else t

    def names(self, prefix):
        return [n[len(prefix):] for n in self.index if n.startswith(prefix)]


def is_state_of_optimiser(name):
    return name.startswith("optimizer.") or name.split(".")[-2:-1] in (["sgd"], ["adam"])


def is_trained(name):
    """Of the model's variables: not running statistics, not pools of images."""
    return not name.rsplit(".", 1)[-1].startswith("running_") and not name.startswith("replay_")


def repeat(model, record, steps, optimiser, settings):
    """Returns the losses per step and the variables after the last one."""
    p = {n: record.get("init/" + n) for n in record.names("init/") if not is_state_of_optimiser(n)}
    trained = [n for n in p if is_trained(n)]
    for n in trained:
        p[n].requires_grad_(True)
    losses = []
    for i in range(steps):
        x = {n: record.get(f"{i}/in/{n}") for n in record.names(f"{i}/in/")}
        x.update({n: record.get(f"{i}/draw/{n}") for n in record.names(f"{i}/draw/")})
        x["settings"] = dict(s.split("=", 1) for s in settings)
        step = {}
        for item in MODELS[model](p, x):
            parts = item if isinstance(item, list) else [item]
            grads = []
            for loss, prefixes, metric in parts:  # all gradients of a group of losses before any update
                names = [n for n in trained if any(n.startswith(q) for q in prefixes)]
                g = torch.autograd.grad(loss, [p[n] for n in names], retain_graph=True)
                grads.append((metric, names, g))
                step[metric] = loss.item()
            with torch.no_grad():
                for metric, names, g in grads:
                    optimiser.step([(n, p[n], gi) for n, gi in zip(names, g)], metric)
        losses.append(step)
    return losses, p


# Biases in front of a batch or instance norm have a gradient of exactly zero; what is computed is rounding noise.  They have no effect on any
# result and are left out.
def without_effect(model):
    if model in ("cosmogan", "dcgan-d", "dcgan-g"):
        return {f"G.h{i}.bias" for i in range(4)} | {f"D.h{i}.bias" for i in (1, 2, 3)}
    if model in ("cyclegan", "cyclegan-g"):
        layers = ["in", "down1", "down2", "up1", "up2"] + [f"res{i}.conv{k}" for i in range(9) for k in (1, 2)]
        return ({f"{g}.{n}.bias" for g in ("G", "G_AB", "G_BA") for n in layers}
                | {f"{d}.conv{i}.bias" for d in ("D_A", "D_B") for i in (2, 3, 4)})
    return set()


# name, device, settings, optimiser, tolerance of losses, of variables, and steps where they are not 5 (of FULL 10): PyTorch's convolutions in
# fp64 take most of the time, and after the third step every moment, statistic and version of a weight has been read again.  Adam runs with a larger epsilon: with 1e-8 its first
# steps are lr * sign(gradient), and the sign of a gradient near zero is noise.  Networks with batch norm over few values run with
# a small learning rate: with the published one even fp32 and fp64 PyTorch part within 20 steps.  The fast convolutions (Winograd)
# err by 1e-6 to 6e-6 of the largest result: among 1e5 activations about one falls on the other side of a ReLU or loses its pooling
# window to a neighbour, which moves a weight's gradient by 1e-4 to 1e-2 of itself; which ones depends on the processor.  Hence
# 1e-5 for what has no such kernels, and 1e-2 to 5e-2 with them: a wrong factor or a lost term is far outside of either.
CASES = [
    ("mnist", "ref", ["batch.per_rank=8"], dict(rule="sgd", lr=0.01, momentum=0.5), 1e-5, 1e-4),
    ("mnist", "cpu", ["batch.per_rank=64"], dict(rule="sgd", lr=0.01, momentum=0.5), 1e-5, 1e-4),
    ("mnist-keras", "cpu", ["batch.per_rank=16", "optimizer.lr=0.001", "optimizer.eps=1e-3"],
     dict(rule="adam", lr=0.001, eps=1e-3, form="tf"), 5e-4, 3e-2),
    ("linear", "cpu", ["batch.per_rank=32", "optimizer.eps=1e-3"], dict(rule="adam", lr=0.001, eps=1e-3), 1e-5, 1e-4),
    ("vit-tiny", "ref", ["batch.per_rank=4", "optimizer.eps=1e-3"], dict(rule="adam", lr=0.001, eps=1e-3), 1e-5, 1e-5),
    ("vit-tiny", "cpu", ["batch.per_rank=16", "optimizer.eps=1e-3", "parallel.clip_norm=0.5"],
     dict(rule="adam", lr=0.001, eps=1e-3, clip=0.5), 1e-5, 1e-5),
    ("resnet18-cifar-stem", "cpu", ["batch.per_rank=4", "optimizer.name=sgd", "optimizer.lr=1e-5", "optimizer.momentum=0.9",
                                    "parallel.clip_norm=0.5", "model.zero_last=true"],
     dict(rule="sgd", lr=1e-5, momentum=0.9, clip=0.5), 1e-3, 5e-2, 3),
    ("resnet18-cifar", "cpu", ["batch.per_rank=8", "optimizer.name=sgd", "optimizer.lr=1e-5", "optimizer.momentum=0.9"],
     dict(rule="sgd", lr=1e-5, momentum=0.9), 1e-3, 5e-2, 3),
    ("cosmogan", "cpu", ["batch.per_rank=4", "model.size=64", "model.width=16", "optimizer.lr=2e-6", "optimizer.eps=1e-3", "model.flip_labels=0"],
     dict(rule="adam", lr=2e-6, beta1=0.5, eps=1e-3, form="tf"), 1e-3, 5e-2, 3),
    ("cosmogan", "cpu", ["batch.per_rank=4", "model.size=32", "model.width=32", "optimizer.lr=2e-6", "optimizer.eps=1e-3", "model.flip_labels=0.5"],
     dict(rule="adam", lr=2e-6, beta1=0.5, eps=1e-3, form="tf"), 1e-3, 5e-2, 5),
    ("cyclegan-g", "cpu", ["batch.per_rank=1", "model.size=64", "model.blocks=1", "optimizer.lr=2e-5", "optimizer.eps=1e-3"],
     dict(rule="adam", lr=2e-5, beta1=0.5, eps=1e-3), 1e-3, 5e-2, 3),
    ("cyclegan", "cpu", ["batch.per_rank=2", "model.size=32", "model.blocks=1", "model.width=16", "model.replay=5",
                         "optimizer.lr=2e-6", "optimizer.eps=1e-3"], dict(rule="adam", lr=2e-6, beta1=0.5, eps=1e-3), 1e-4, 1e-2),
    ("wgan-gp", "ref", ["batch.per_rank=8", "optimizer.eps=1e-3"], dict(rule="adam", lr=1e-4, eps=1e-3), 1e-5, 1e-3),
    ("wgan-gp", "cpu", ["batch.per_rank=32", "optimizer.eps=1e-3"], dict(rule="adam", lr=1e-4, eps=1e-3), 1e-5, 1e-3),
    ("aae", "cpu", ["batch.per_rank=4", "model.points=64", "optimizer.eps=1e-3", "model.sum_over=0"],
     dict(rule="adam", lr=1e-4, eps=1e-3), 1e-4, 1e-2),
    ("aae", "ref", ["batch.per_rank=2", "model.points=24", "optimizer.eps=1e-3"],
     dict(rule="adam", lr=1e-4, eps=1e-3), 1e-4, 1e-2),
]

# The published sizes.
FULL = [
    ("vit", "cpu", ["batch.per_rank=2", "optimizer.eps=1e-3", "optimizer.lr=1e-4", "parallel.clip_norm=0.5"],
     dict(rule="adam", lr=1e-4, eps=1e-3, clip=0.5), 1e-5, 1e-4),
    ("vit-b32", "cpu", ["batch.per_rank=2", "optimizer.eps=1e-3", "optimizer.lr=1e-4", "parallel.clip_norm=0.5"],
     dict(rule="adam", lr=1e-4, eps=1e-3, clip=0.5), 1e-5, 1e-4),
    ("resnet18", "cpu", ["batch.per_rank=8", "optimizer.name=sgd", "optimizer.lr=1e-5", "optimizer.momentum=0.9"],
     dict(rule="sgd", lr=1e-5, momentum=0.9), 1e-3, 5e-2),
    ("aae", "cpu", ["batch.per_rank=8", "optimizer.eps=1e-3", "model.sum_over=0"], dict(rule="adam", lr=1e-4, eps=1e-3), 1e-4, 5e-2),
    ("cosmogan", "cpu", ["batch.per_rank=2", "optimizer.lr=2e-6", "optimizer.eps=1e-3", "model.flip_labels=0.5"],
     dict(rule="adam", lr=2e-6, beta1=0.5, eps=1e-3, form="tf"), 1e-3, 5e-2),
    ("cyclegan", "cpu", ["batch.per_rank=1", "optimizer.eps=1e-3"], dict(rule="adam", lr=2e-4, beta1=0.5, eps=1e-3), 1e-4, 1e-1, 1),
]


# Tolerances of losses and of variables in other precisions, at least.  A rounding of 2^-9 (bf16) decides more of the ReLUs and
# pooling windows that are close: on the CPU up to 1.8e-2 and 0.52 were seen, with fp16 7.9e-3 and 0.24, where a ReLU's input of
# 1e-8 (zero_last, after one small step) is 0 in fp16.  tf32 has as many bits of a fraction as fp16, and tensor units cut what is
# behind them, which is up to twice what rounding takes away: on a GPU up to 7.8e-3 (aae) and 0.23 (cyclegan) were seen.
COARSE = {"tf32": (1.5e-2, 0.35), "bf16": (5e-2, 0.7), "fp16": (1.5e-2, 0.35)}


def worst_loss(a, b):
    return max(abs(x[m] - y[m]) / max(abs(y[m]), 1e-2) for x, y in zip(a, b) for m in y)


def distances(a, b, start, skip, steps):
    """(Distance between a and b relative to how far b moved, name) of every variable, the largest (or one that is no number)
    first."""
    found = []
    for n in b:
        moved = (b[n] - start[n]).norm().item()
        rounding = steps * 2.0 ** -24 * b[n].norm().item()
        far = (a[n].double() - b[n].double()).norm().item()
        if n not in skip:
            found.append(((far - rounding if far > rounding else 0.0) / max(moved, 1e-6) if far == far else far, n))
    return sorted(found, key=lambda d: -d[0] if d[0] == d[0] else -float("inf"))


def run_case(fp32, tool, model, device, settings, optimiser, loss_tol, var_tol, steps):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([tool, model, device, str(steps), folder] + settings, check=True)
        runs = {}
        for name, double in (("fp32", False), ("fp64", True))[0 if fp32 else 1:]:
            losses, p = repeat(model, Record(folder, double), steps, Adam(**optimiser), settings)
            runs[name] = losses, {n: t.detach() for n, t in p.items()}
        record = Record(folder)
        exact = runs["fp64"]
        ours = ([{m: record.get(f"{i}/out/{m}").item() for m in step} for i, step in enumerate(exact[0])],
                {n: record.get("final/" + n) for n in exact[1]})
        start, skip = {n: record.get("init/" + n) for n in exact[1]}, without_effect(model)

        def distance(a, b):
            return worst_loss(a[0], b[0]), *distances(a[1], b[1], start, skip, steps)

        to_exact = distance(ours, exact)
        ok = to_exact[0] <= loss_tol and to_exact[1][0] <= var_tol
        print(f"{'ok    ' if ok else 'FAILED'} {model} on {device}, {steps} steps, {len(start)} variables: "
              f"losses {to_exact[0]:.1e} from fp64 (allowed {loss_tol:.0e}), "
              f"variables {to_exact[1][0]:.1e} in {to_exact[1][1]} (allowed {var_tol:.0e})", flush=True)
        if not ok:
            print("       farthest: " + ", ".join(f"{n} {d:.1e}" for d, n in to_exact[1:7]), flush=True)
        if fp32:
            to_fp32, theirs = distance(ours, runs["fp32"]), distance(runs["fp32"], exact)
            print(f"       from fp32: losses {to_fp32[0]:.1e}, variables {to_fp32[1][0]:.1e}; "
                  f"fp32 PyTorch from fp64 {theirs[0]:.1e}, {theirs[1][0]:.1e}", flush=True)
        return ok


def changed(case, device, precision, steps):
    """The case on another device, in another precision; with so many steps unless it has its own number."""
    model, where, settings, optimiser, loss_tol, var_tol, *own = case
    if precision:
        settings = settings + ["precision=" + precision]
        loss_tol, var_tol = max(loss_tol, COARSE[precision][0]), max(var_tol, COARSE[precision][1])
    return model, device or where, settings, optimiser, loss_tol, var_tol, own[0] if own else steps


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage=__doc__.partition("usage: ")[2])
    parser.add_argument("tool")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--fp32", action="store_true")
    parser.add_argument("--device")
    parser.add_argument("--precision", choices=COARSE)
    args = parser.parse_intermixed_args()
    cases = [c for c in (FULL if args.full else CASES) if not (args.device and c[1] == "ref")]
    chosen = [changed(c, args.device, args.precision, 10 if args.full else 5) for c in cases if not args.models or c[0] in args.models]
    if not chosen:
        sys.exit(f"no case of {' '.join(args.models)}; there are {' '.join(sorted({c[0] for c in cases}))}")
    sys.exit(0 if all([run_case(args.fp32, args.tool, *c) for c in chosen]) else 1)
