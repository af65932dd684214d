#!/usr/bin/python3
"""Whole training steps, ours against PyTorch, interleaved in one run; ratio = PyTorch's time / our time.

usage: bench/compare_torch.py [--build build] [--rounds 7] [--seconds 1.5] [--threads 2] [--python PYTHON] [--json FILE] [ROW ...]

Each round runs PyTorch for a while, then Lockstep; a row's figure is the median of the rounds' ratios, with the smallest and the
largest beside it.  PyTorch is tuned: its thread count is set, OpenBLAS is told the processor, malloc keeps its pages, gradients
are set to None, and the best of four variants (nchw or channels-last, OpenMP threads that spin or sleep; tried first) is used.  Both sides start from the same weights and
inputs.  Run it on an otherwise idle machine.
"""
import argparse
import json
import os
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
    "aae": ("aae", ["batch.per_rank=32"], ("adam", 1e-4), 2.5),
}

TUNED = {
    "OPENBLAS_CORETYPE": "SkylakeX",
    "GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=8589934592:glibc.malloc.trim_threshold=17179869184:"
                      "glibc.malloc.top_pad=268435456",
}


def worker(model, folder, threads, optimiser, lr):
    """Reads "LAYOUT SECONDS" lines, runs steps for that long, prints the median step time."""
    import torch
    from compare_steps import Record, is_state_of_optimiser
    from models import MODELS
    torch.set_num_threads(threads)
    record = Record(folder)

    def prepare(layout):
        def place(t):
            return t.contiguous(memory_format=torch.channels_last) if layout == "nhwc" and t.dim() == 4 else t
        p = {n: place(record.get("init/" + n)) for n in record.names("init/") if not is_state_of_optimiser(n)}
        trained = [n for n in p if not n.rsplit(".", 1)[-1].startswith("running_")]
        for n in trained:
            p[n].requires_grad_(True)
        x = {n: place(record.get("0/in/" + n)) for n in record.names("0/in/")}
        x.update({n: place(record.get("0/draw/" + n)) for n in record.names("0/draw/")})
        return p, x, trained, {}

    def step(p, x, trained, optimisers):
        for item in MODELS[model](p, x, drop=True):
            parts = item if isinstance(item, list) else [item]
            for loss, prefixes, metric in parts:
                if metric not in optimisers:
                    mine = [p[n] for n in trained if any(n.startswith(q) for q in prefixes)]
                    optimisers[metric] = (torch.optim.SGD(mine, lr=lr, momentum=0.5) if optimiser == "sgd"
                                          else torch.optim.Adam(mine, lr=lr)), mine
                o, mine = optimisers[metric]
                o.zero_grad(set_to_none=True)
                loss.backward(inputs=mine, retain_graph=len(parts) > 1)
            for _, _, metric in parts:
                optimisers[metric][0].step()

    prepared = {}
    for line in sys.stdin:
        layout, seconds = line.split()
        if layout not in prepared:
            prepared = {layout: prepare(layout)}
        times, end = [], time.perf_counter() + float(seconds)
        while len(times) < 2 or time.perf_counter() < end:
            t0 = time.perf_counter()
            step(*prepared[layout])
            times.append(time.perf_counter() - t0)
        print(statistics.median(times[1:]), flush=True)  # the first step after a pause warms caches


class Torch:
    def __init__(self, args, model, folder, optimiser, lr, policy):
        env = dict(os.environ, **TUNED, OMP_NUM_THREADS=str(args.threads), **policy)
        self.process = subprocess.Popen(
            [args.python, os.path.abspath(__file__), "--worker", model, folder, str(args.threads), optimiser, str(lr)],
            env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, layout, seconds):
        self.process.stdin.write(f"{layout} {seconds}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"compare_torch.py: PyTorch's process ended (status {self.process.wait()}; -9 is usually too little memory)")
        return float(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def best_torch(args, model, folder, optimiser, lr):
    """The fastest variant of PyTorch, running, and its layout.  Only one runs at a time: some models fill the memory."""
    best, chosen = None, None
    for policy in ({"OMP_WAIT_POLICY": "PASSIVE"}, {}):
        torch = Torch(args, model, folder, optimiser, lr, policy)
        for layout in ("nchw", "nhwc"):
            torch.run(layout, 0)  # warms up
            t = torch.run(layout, args.seconds / 2)
            if best is None or t < best:
                best, chosen = t, (policy, layout)
            elif t > 3 * best:
                break
        torch.close()
    policy, layout = chosen
    torch = Torch(args, model, folder, optimiser, lr, policy)
    torch.run(layout, 0)
    return torch, layout


def ours(args, model, settings):
    out = subprocess.run([os.path.join(args.build, "lockstep"), "bench", model, "--json", "--threads", str(args.threads),
                          "--seconds", str(args.seconds)] + settings, check=True, capture_output=True, text=True)
    return json.loads(out.stdout.strip().splitlines()[-1])


def compare(args, name):
    model, settings, (optimiser, lr), target = ROWS[name]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([os.path.join(args.build, "tests", "torch", "torch_steps"), model, "cpu", "1", folder] + settings,
                       check=True)
        torch, layout = best_torch(args, model, folder, optimiser, lr)
        ours(args, model, settings)  # chooses kernels on the first run of a machine
        rounds = []
        for _ in range(args.rounds):
            a, b = torch.run(layout, args.seconds), ours(args, model, settings)
            rounds.append((a, b["step_s"]["p50"], b))
        torch.close()
    ratios = sorted(a / b for a, b, _ in rounds)
    last = rounds[-1][2]
    return {"row": name, "batch": settings[0].split("=")[1], "torch_layout": layout,
            "torch_ms": 1e3 * statistics.median(a for a, _, _ in rounds),
            "ours_ms": 1e3 * statistics.median(b for _, b, _ in rounds), "ratio": statistics.median(ratios),
            "ratio_min": ratios[0], "ratio_max": ratios[-1], "target": target, "rounds": args.rounds,
            "peak_share": last["peak_share"], "allocs_per_step": last["allocs_per_step"],
            "planned_bytes": last["planned_bytes"], "used_bytes": last["used_bytes"]}


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--worker":
        worker(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5], float(sys.argv[6]))
        return
    parser = argparse.ArgumentParser(description="training steps against PyTorch, interleaved")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--python", default="/usr/bin/python3", help="the Python that has PyTorch")
    parser.add_argument("--json")
    parser.add_argument("rows", nargs="*", metavar="ROW", help="of: " + " ".join(ROWS))
    args = parser.parse_args()
    results = []
    print("| step | batch | PyTorch ms (layout) | ours ms | ratio (min to max) | target |\n|---|---|---|---|---|---|")
    for name in args.rows or ROWS:
        r = compare(args, name)
        results.append(r)
        print(f"| {r['row']} | {r['batch']} | {r['torch_ms']:.2f} ({r['torch_layout']}) | {r['ours_ms']:.2f} | "
              f"**{r['ratio']:.2f}** ({r['ratio_min']:.2f} to {r['ratio_max']:.2f}) | {r['target']} |", flush=True)
    if args.json:
        with open(args.json, "w") as f:
            json.dump(results, f, indent=1)


if __name__ == "__main__":
    main()
