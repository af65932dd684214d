#!/usr/bin/python3
"""Whole training steps, ours against PyTorch, interleaved in one run; ratio = PyTorch's time / our time.

usage: bench/compare_torch.py [--build build] [--rounds 7] [--seconds 1.5] [--threads 2] [--precision fp32|bf16] [--python PYTHON] [--json FILE] [ROW ...]

Each round runs PyTorch for a while, then Lockstep; a row's figure is the median of the rounds' ratios, with the smallest and the
largest beside it.  PyTorch is tuned: its thread count is set, OpenBLAS is told the processor, malloc keeps its pages, gradients
are set to None, Adam and attention are PyTorch's own kernels where it has them, and the best of four variants (nchw or channels-last,
OpenMP threads that spin or sleep; tried first) is used.  Both sides start from the same weights and
inputs.  With --precision bf16 ours is precision=bf16 and PyTorch's is torch.autocast.  Run it on an otherwise idle machine.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "torch"))

# row: model, settings, optimiser, target ratio
ROWS = {
    "mnist-keras": ("mnist-keras", ["batch.per_rank=64"], ("adam", 0.01), 3.3),
    "mnist": ("mnist", ["batch.per_rank=64"], ("sgd", 0.01), 3.0),
    "dcgan-d": ("dcgan-d", ["batch.per_rank=8"], ("adam", 2e-4), 2.0),
    "dcgan-g": ("dcgan-g", ["batch.per_rank=8"], ("adam", 2e-4), 3.5),
    "resnet18-224": ("resnet18", ["batch.per_rank=16"], ("adam", 1e-3), 2.0),
    "resnet18-32": ("resnet18-cifar", ["batch.per_rank=96"], ("adam", 1e-3), 2.0),
    "cyclegan-g": ("cyclegan-g", ["batch.per_rank=1"], ("adam", 2e-4), 2.4),
    "cyclegan": ("cyclegan", ["batch.per_rank=1"], ("adam", 2e-4), 2.4),
    "aae": ("aae", ["batch.per_rank=32"], ("adam", 1e-4), 2.5),
    "vit": ("vit", ["batch.per_rank=8"], ("adam", 1e-4), 2.0),
}

TUNED = {
    "OPENBLAS_CORETYPE": "SkylakeX",
    "GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=8589934592:glibc.malloc.trim_threshold=17179869184:"
                      "glibc.malloc.top_pad=268435456",
}


def check_products(python):
    """PyTorch as packaged takes whatever BLAS there is; with the reference one its products are tens of times slower than they
    should be, and a comparison with that would be worth nothing."""
    loaded = subprocess.run([python, "-c", "import torch; torch.ones(9, 9) @ torch.ones(9, 9); print(open('/proc/self/maps').read())"],
                            check=True, capture_output=True, text=True).stdout
    if "/blas/libblas.so" in loaded:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {python}: its PyTorch computes products with the reference BLAS "
                 "(/usr/lib/*/blas/libblas.so.3); install libopenblas0-pthread")


def fastest_adam(weights, lr):
    """PyTorch's own kernel for all of an update, from 2.4 on."""
    import torch
    try:
        return torch.optim.Adam(weights, lr=lr, fused=True)
    except (TypeError, RuntimeError):
        return torch.optim.Adam(weights, lr=lr)


def fastest_attention(p, name, h, heads):
    """As attention of tests/torch/models.py, by PyTorch's own kernel, from 2.0 on."""
    import models
    import torch.nn.functional as F

    n, tokens, width = h.shape
    q, k, v = models.linear(p, name + ".qkv", h).view(n, tokens, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
    made = F.scaled_dot_product_attention(q, k, v)
    return models.linear(p, name + ".proj", made.transpose(1, 2).reshape(n, tokens, width))


class Model:
    """A model in PyTorch with its weights, inputs and optimisers, in one layout ("nchw" or "nhwc")."""

    def __init__(self, model, folder, layout, optimiser, lr):
        from compare_steps import Record, is_state_of_optimiser, is_trained
        from models import MODELS
        import torch

        def place(t):
            return t.contiguous(memory_format=torch.channels_last) if layout == "nhwc" and t.dim() == 4 else t
        record = Record(folder)
        self.forward, self.optimisers = MODELS[model], {}
        self.make = {"sgd": lambda w: torch.optim.SGD(w, lr=lr, momentum=0.5), "adam": lambda w: fastest_adam(w, lr)}[optimiser]
        self.p = {n: place(record.get("init/" + n)) for n in record.names("init/") if not is_state_of_optimiser(n)}
        self.trained = [n for n in self.p if is_trained(n)]
        for n in self.trained:
            self.p[n].requires_grad_(True)
        self.x = {n: place(record.get("0/in/" + n)) for n in record.names("0/in/")}
        self.x.update({n: place(record.get("0/draw/" + n)) for n in record.names("0/draw/")})

    def items(self, low):
        """What the model yields, each computed in bf16 where `low`, else in fp32."""
        import torch

        items = iter(self.forward(self.p, self.x, drop=True))
        while True:
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=low):
                item = next(items, None)
            if item is None:
                return
            yield item

    def step(self, low):
        for item in self.items(low):
            parts = item if isinstance(item, list) else [item]
            for loss, prefixes, metric in parts:
                if metric not in self.optimisers:
                    mine = [self.p[n] for n in self.trained if any(n.startswith(q) for q in prefixes)]
                    self.optimisers[metric] = self.make(mine), mine
                o, mine = self.optimisers[metric]
                o.zero_grad(set_to_none=True)
                loss.backward(inputs=mine, retain_graph=len(parts) > 1)
            for _, _, metric in parts:
                self.optimisers[metric][0].step()


def status_bytes(key, pid="self"):
    """VmRSS (resident now) or VmHWM (the most that was resident) of a process, in bytes."""
    with open(f"/proc/{pid}/status") as f:
        return next(1024 * int(line.split()[1]) for line in f if line.startswith(key + ":"))


def worker(model, folder, threads, optimiser, lr):
    """Reads "LAYOUT SECONDS [PRECISION]" lines, runs steps for that long, prints the median step time.  "memory LAYOUT" runs three
    steps and prints by how much the resident memory was larger at its largest than after the import of PyTorch; "ready 0" prints
    0 when PyTorch is imported."""
    import torch
    import compare_steps  # noqa: F401  (what it imports counts as imported)
    import models
    torch.set_num_threads(threads)
    if hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        models.attention = fastest_attention
    imported, prepared, usual = status_bytes("VmRSS"), {}, os.environ.get("LS_TORCH_PRECISION")
    for line in sys.stdin:
        layout, seconds, low = (line + " " + usual).split()[:3]
        low = low == "bf16"
        if layout == "ready":
            print(0.0, flush=True)
            continue
        if layout == "memory":
            m = Model(model, folder, seconds, optimiser, lr)
            for _ in range(3):
                m.step(low)
            print(status_bytes("VmHWM") - imported, flush=True)
            continue
        if layout not in prepared:
            prepared = {}
            prepared = {layout: Model(model, folder, layout, optimiser, lr)}
        times, end = [], time.perf_counter() + float(seconds)
        while len(times) < 2 or time.perf_counter() < end:
            t0 = time.perf_counter()
            prepared[layout].step(low)
            times.append(time.perf_counter() - t0)
        print(statistics.median(times[1:]), flush=True)  # the first step after a pause warms caches


def precision_of(args):
    return getattr(args, "precision", "fp32")  # other programs that compare have no such option


class Ended(RuntimeError):
    """PyTorch's process ended before it answered."""


class Torch:
    """PyTorch in a process of its own.  `limit` is the most private memory it may ask for: beyond it, PyTorch fails
    with a message instead of being killed."""

    def __init__(self, args, model, folder, optimiser, lr, environment, limit=None):
        def confine():
            if limit:
                resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [args.python, os.path.abspath(__file__), "--worker", model, folder, str(args.threads), optimiser, str(lr)],
            env=dict(os.environ, OMP_NUM_THREADS=str(args.threads), LS_TORCH_PRECISION=precision_of(args), **environment), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.errors, preexec_fn=confine, text=True)

    def run(self, layout, seconds, precision=""):
        try:
            self.process.stdin.write(f"{layout} {seconds} {precision}\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            return float(line)
        status = self.process.wait()
        self.errors.seek(0)
        said = (self.errors.read().strip().splitlines() or ["nothing"])[-1][:300]
        raise Ended(f"PyTorch's process ended with status {status} (-9 is usually too little memory) and said: {said}")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def best_torch(args, model, folder, optimiser, lr, limit=None, deadline=None):
    """The fastest variant of PyTorch, running, with its layout.  Only one runs at a time: some models fill the memory.
    Variants that would be tried after the deadline are left out."""
    best, chosen = None, None
    for policy in ({"OMP_WAIT_POLICY": "PASSIVE"}, {}):
        torch = Torch(args, model, folder, optimiser, lr, dict(TUNED, **policy), limit)
        try:
            for layout in ("nchw", "nhwc"):
                if best is not None and deadline is not None and time.monotonic() > deadline:
                    break
                torch.run(layout, 0)  # warms up
                t = torch.run(layout, args.seconds / 2)
                if best is None or t < best:
                    best, chosen = t, (policy, layout)
                elif t > 3 * best:
                    break
        finally:
            torch.close()
    policy, layout = chosen
    torch = Torch(args, model, folder, optimiser, lr, dict(TUNED, **policy), limit)
    torch.run(layout, 0)
    return torch, layout


def ours(args, model, settings, more=()):
    command = [os.path.join(args.build, "lockstep"), "bench", model, "--json", "--threads", str(args.threads), "--seconds",
               str(args.seconds), "precision=" + precision_of(args)] + settings + list(more)
    out = subprocess.run(getattr(args, "prefix", []) + command, check=True, capture_output=True, text=True)
    return json.loads(out.stdout.strip().splitlines()[-1])


def record_steps(args, model, folder, settings, steps=1):
    """The command that writes initial weights, inputs and draws to `folder`."""
    return [os.path.join(args.build, "tests", "torch", "torch_steps"), model, "cpu", str(steps), folder] + settings


def in_turns(args, model, settings, optimiser, lr, folder, limit=None, deadline=None):
    """The rounds: at least one, at most args.rounds, none begun after the deadline."""
    middle = None if deadline is None else (time.monotonic() + deadline) / 2
    torch, layout = best_torch(args, model, folder, optimiser, lr, limit, middle)
    try:
        ours(args, model, settings)  # chooses kernels on the first run of a machine
        rounds = []
        while len(rounds) < args.rounds and (not rounds or deadline is None or time.monotonic() < deadline):
            a, b = torch.run(layout, args.seconds), ours(args, model, settings)
            rounds.append((a, b["step_s"]["p50"], b))
    finally:
        torch.close()
    ratios = sorted(a / b for a, b, _ in rounds)
    last = rounds[-1][2]
    return {"batch": settings[0].split("=")[1], "torch_layout": layout,
            "torch_ms": 1e3 * statistics.median(a for a, _, _ in rounds),
            "ours_ms": 1e3 * statistics.median(b for _, b, _ in rounds), "ratio": statistics.median(ratios),
            "ratio_min": ratios[0], "ratio_max": ratios[-1], "rounds": len(rounds),
            "peak_share": last["peak_share"], "allocs_per_step": last["allocs_per_step"],
            "planned_bytes": last["planned_bytes"], "used_bytes": last["used_bytes"]}


def compare(args, name):
    model, settings, (optimiser, lr), target = ROWS[name]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(record_steps(args, model, folder, settings), check=True)
        return {"row": name, "target": target, **in_turns(args, model, settings, optimiser, lr, folder)}


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--worker":
        worker(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5], float(sys.argv[6]))
        return
    parser = argparse.ArgumentParser(description="training steps against PyTorch, interleaved")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--python", default="/usr/bin/python3", help="the Python that has PyTorch")
    parser.add_argument("--json")
    parser.add_argument("rows", nargs="*", metavar="ROW", help="of: " + " ".join(ROWS))
    args = parser.parse_args()
    check_products(args.python)
    results = []
    print("| step | batch | PyTorch ms (layout) | ours ms | ratio (min to max) | target |\n|---|---|---|---|---|---|")
    for name in args.rows or ROWS:
        try:
            r = compare(args, name)
        except Ended as ended:
            sys.exit(f"compare_torch.py: {name}: {ended}")
        results.append(r)
        print(f"| {r['row']} | {r['batch']} | {r['torch_ms']:.2f} ({r['torch_layout']}) | {r['ours_ms']:.2f} | "
              f"**{r['ratio']:.2f}** ({r['ratio_min']:.2f} to {r['ratio_max']:.2f}) | {r['target']} |", flush=True)
    if args.json:
        with open(args.json, "w") as f:
            json.dump(results, f, indent=1)


if __name__ == "__main__":
    main()
