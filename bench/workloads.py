#!/usr/bin/python3
"""The whole training step of every published workload, ours against PyTorch: speed and peak memory.

usage: bench/workloads.py [--only NAME ...] [--rounds 5] [--budget 180] [--seconds 1.5] [--threads 2] [--build build]
                          [--python PYTHON] [--json FILE]

Speed: as in bench/compare_torch.py: both start from the same weights, inputs and draws and run in turns in one run; a figure
is the median over the rounds of tuned PyTorch's time / our time, with the smallest and the largest round.  --budget is about how many
seconds one workload may take: rounds that would begin later are left out (at least one is run), and when half of it is over no further
variant of PyTorch is tried.

Peak memory, each from a process of its own that runs three steps:
  planned   the bytes that `lockstep bench` says its plan has laid out, which is what it allocates for tensors
  ours      VmHWM of tests/torch/torch_steps, the most that was ever resident, with program and libraries, nothing subtracted
  PyTorch   VmHWM less VmRSS after the import of PyTorch: weights, gradients, optimiser, activations, buffers of libraries.  In the
            layout that was fastest, with malloc's defaults: the settings that make PyTorch fast keep pages that it freed.
            Nothing of PyTorch itself counts.

A workload that fails (no memory, no PyTorch version of the model) is named, and the others go on; the exit status is then 1.
PyTorch may ask for nine tenths of the memory that is free; where that is too little, the next smaller batch is taken, on both sides.
Run it on an otherwise idle machine.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import compare_torch as ct

# name: model, settings, batches to try, optimiser, learning rate
WORKLOADS = {
    "mnist": ("mnist", [], (64,), "sgd", 0.01),
    "mnist-keras": ("mnist-keras", [], (64,), "adam", 0.01),
    "resnet18-224": ("resnet18", [], (16,), "adam", 1e-3),
    "resnet18-32": ("resnet18-cifar", [], (96,), "adam", 1e-3),
    "vit-b16": ("vit", [], (4, 2), "adam", 1e-3),
    "aae": ("aae", ["model.points=3375"], (32, 16, 8), "adam", 1e-4),
    "cosmogan": ("cosmogan", [], (16, 8), "adam", 2e-4),
    "cyclegan": ("cyclegan", ["model.size=256"], (1,), "adam", 2e-4),
}


def free_bytes():
    with open("/proc/meminfo") as f:
        return next(1024 * int(line.split()[1]) for line in f if line.startswith("MemAvailable:"))


def our_peak(command):
    """VmHWM of a process while it lives; it never falls, so the last look is the largest."""
    process, peak = subprocess.Popen(command, stderr=subprocess.PIPE, text=True), 0
    while process.poll() is None:
        try:
            peak = max(peak, ct.status_bytes("VmHWM", process.pid))
        except (FileNotFoundError, StopIteration, ProcessLookupError):
            break  # it ended while we looked
        time.sleep(0.002)
    if process.wait() != 0:
        raise RuntimeError(f"{command[0]}: {process.stderr.read().strip()}")
    return peak


def torch_peak(args, model, folder, layout, optimiser, lr, limit):
    torch = ct.Torch(args, model, folder, optimiser, lr, {"OPENBLAS_CORETYPE": ct.TUNED["OPENBLAS_CORETYPE"]}, limit)
    try:
        return int(torch.run("memory", layout))
    finally:
        torch.close()


def measure(args, name, batch, deadline):
    model, settings, _, optimiser, lr = WORKLOADS[name]
    settings, limit = [f"batch.per_rank={batch}"] + settings, int(0.9 * free_bytes())
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(ct.record_steps(args, model, folder, settings), check=True, capture_output=True, text=True)
        result = ct.in_turns(args, model, settings, optimiser, lr, folder, limit, deadline)
        result["torch_peak_bytes"] = torch_peak(args, model, folder, result["torch_layout"], optimiser, lr, limit)
    with tempfile.TemporaryDirectory() as folder:
        result["our_peak_bytes"] = our_peak(ct.record_steps(args, model, folder, settings, steps=3))
    result["memory_ratio"] = result["torch_peak_bytes"] / result["our_peak_bytes"]
    return {"workload": name, **result}


def why(error):
    """One line, for a failure of either side."""
    said = getattr(error, "stderr", None)
    return (said.strip().splitlines()[-1] if said and said.strip() else str(error))[:400]


def compare(args, name):
    """The result of the largest batch that works, or what is wrong with the smallest."""
    deadline = time.monotonic() + args.budget
    for batch in WORKLOADS[name][2]:
        try:
            return measure(args, name, batch, deadline)
        except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
            failure = {"workload": name, "batch": str(batch), "error": why(error)}
            print(f"{name}, batch {batch}: FAILED: {failure['error']}", file=sys.stderr, flush=True)
    return failure


def row(r):
    if "error" in r:
        return f"| {r['workload']} | {r['batch']} | FAILED: {r['error'].replace('|', '/')} | | | | | | |"
    mib = 2.0 ** 20
    return (f"| {r['workload']} | {r['batch']} | {r['torch_ms']:.1f} ({r['torch_layout']}) | {r['ours_ms']:.1f} | **{r['ratio']:.2f}** "
            f"({r['ratio_min']:.2f} to {r['ratio_max']:.2f}, {r['rounds']} rounds) | {r['torch_peak_bytes'] / mib:.0f} | "
            f"{r['our_peak_bytes'] / mib:.0f} | {r['planned_bytes'] / mib:.1f} | **{r['memory_ratio']:.1f}** |")


def main():
    parser = argparse.ArgumentParser(description="full training steps of all workloads against PyTorch: speed and peak memory")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=list(WORKLOADS), default=list(WORKLOADS),
                        help="of: " + " ".join(WORKLOADS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=180, help="seconds for one workload, about")
    parser.add_argument("--seconds", type=float, default=1.5, help="of one side in one round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--build", default=os.path.join(ct.ROOT, "build"))
    parser.add_argument("--python", default="/usr/bin/python3", help="the Python that has PyTorch")
    parser.add_argument("--json")
    args = parser.parse_args()
    ct.check_products(args.python)
    results = []
    print("| step | batch | PyTorch ms (layout) | ours ms | speed: ratio | PyTorch peak MiB | our peak MiB | planned MiB | "
          "memory: ratio |\n|---|---|---|---|---|---|---|---|---|", flush=True)
    for name in args.only:
        results.append(compare(args, name))
        print(row(results[-1]), flush=True)
        if args.json:
            with open(args.json, "w") as f:
                json.dump(results, f, indent=1)
    return 1 if any("error" in r for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
