#!/usr/bin/python3
"""Whole training steps in bf16 and in fp32, ours and PyTorch's, all four in turns in one run.

usage: bench/compare_bf16.py [--build build] [--rounds 3] [--seconds 1] [--threads 16 2] [--layout best|nchw|nhwc] [--python PYTHON] [--json FILE]
                            [--sides torch_fp32 torch_bf16 ours_fp32 ours_bf16] [ROW ...]

A round runs PyTorch in fp32, PyTorch in bf16 (autocast), then Lockstep in both, in turns of a few steps
(`lockstep bench ... precision=bf16 --against precision=fp32`).  A ratio is the median over the rounds of two times of
one round, with the smallest and the largest beside it.  PyTorch is tuned as in bench/compare_torch.py, and has for each
precision the layout that it is faster with, or the one that is named.  Kernels are chosen before the rounds begin.

--sides leaves some of the four out: long steps of two sides can be compared in many short rounds.  A process of PyTorch that then computes
in one precision alone has its first step of a round as warm-up, as ever, and no more of them.

A thread count that leaves room for it (--threads 2 on 16 cores) runs all rows at a time, each on cores of its own, which both sides
of a row share in the same way.  Run it on an otherwise idle machine.
"""
import argparse
import concurrent.futures
import copy
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import compare_torch as ct

ROWS = ["resnet18-224", "dcgan-d", "dcgan-g", "vit"]
SIDES = ["torch_fp32", "torch_bf16", "ours_fp32", "ours_bf16"]


class Row:
    """One model with one number of threads, on cores of its own where `cores` names them."""

    def __init__(self, args, name, threads, cores):
        self.args, self.name, self.threads, self.cores = copy.copy(args), name, threads, cores
        self.args.threads, self.args.precision = threads, "bf16"
        self.model, self.settings, (self.optimiser, self.lr), _ = ct.ROWS[name]
        self.folder = tempfile.TemporaryDirectory()
        self.torch = None

    def record(self):
        """Writes the weights and inputs; how fast does not matter."""
        subprocess.run(ct.record_steps(self.args, self.model, self.folder.name, self.settings), check=True,
                       env=dict(os.environ, LOCKSTEP_TUNE="off"))

    def start(self):
        self.torch = ct.Torch(self.args, self.model, self.folder.name, self.optimiser, self.lr, ct.TUNED)
        if self.cores:
            os.sched_setaffinity(self.torch.process.pid, self.cores)
        self.torch.run("ready", 0)

    def ours(self):
        command = ["--against", "precision=fp32"] if "ours_fp32" in self.args.sides else []
        if not self.cores:
            return ct.ours(self.args, self.model, self.settings, command)
        pinned = copy.copy(self.args)
        pinned.prefix = ["taskset", "-c", ",".join(str(c) for c in sorted(self.cores))]
        return ct.ours(pinned, self.model, self.settings, command)

    def faster_layout(self, precision):
        if self.model == "vit":  # it has no maps
            return "nchw"
        if self.args.layout != "best":
            return self.args.layout
        times = {}
        for layout in ("nchw", "nhwc"):
            self.torch.run(layout, 0, precision)
            times[layout] = self.torch.run(layout, self.args.seconds / 2, precision)
        return min(times, key=times.get)

    def measure(self):
        layouts = {p: self.faster_layout(p) for p in ("fp32", "bf16") if "torch_" + p in self.args.sides}
        if len(layouts) == 1:
            for p, layout in layouts.items():
                self.torch.run(layout, 0, p)
        self.ours()
        rounds = [self.round(layouts) for _ in range(self.args.rounds)]
        self.torch.close()
        return {"row": self.name, "threads": self.threads, "batch": self.settings[0].split("=")[1], "layouts": layouts, "rounds": rounds}

    def round(self, layouts):
        times = {}
        for p, layout in layouts.items():
            if len(layouts) > 1:
                self.torch.run(layout, 0, p)
            times["torch_" + p] = self.torch.run(layout, self.args.seconds, p)
        time.sleep(0.5)  # PyTorch's threads go on spinning for a while; ours is alone then
        result = self.ours()
        times["ours_bf16"] = result["step_s"]["p50"]
        if "ours_fp32" in self.args.sides:
            times["ours_fp32"] = result["compared"]["step_s"]["p50"]
        return times


def ratio(result, above, below):
    if above not in result["rounds"][0]:
        return "-"
    r = sorted(t[above] / t[below] for t in result["rounds"])
    return f"**{statistics.median(r):.2f}** ({r[0]:.2f} to {r[-1]:.2f})"


def line(result):
    def ms(side):
        times = [1e3 * t[side] for t in result["rounds"] if side in t]
        return f"{statistics.median(times):.1f}" if times else "-"
    return (f"| {result['threads']} | {result['row']} | {result['batch']} | " + " | ".join(ms(side) for side in SIDES) + " | "
            + " | ".join(ratio(result, a, "ours_bf16") for a in ("ours_fp32", "torch_fp32", "torch_bf16")) + " |")


def measure_all(args, threads, show):
    """The results of all rows, one after the other, or at a time where each can have cores of its own."""
    cores = sorted(os.sched_getaffinity(0))
    apart = len(cores) >= threads * len(args.rows) > threads
    rows = [Row(args, n, threads, set(cores[i * threads:(i + 1) * threads]) if apart else None) for i, n in enumerate(args.rows)]
    with concurrent.futures.ThreadPoolExecutor(len(rows)) as pool:
        list(pool.map(Row.record, rows))
        list(pool.map(Row.start, rows))
        results = []
        for r in pool.map(Row.measure, rows) if apart else map(Row.measure, rows):
            results.append(r)
            show(r)
    return results


def main():
    parser = argparse.ArgumentParser(description="training steps in bf16 and fp32, ours and PyTorch's, in turns")
    parser.add_argument("--build", default=os.path.join(ct.ROOT, "build"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1, help="of one side in one round")
    parser.add_argument("--threads", type=int, nargs="+", default=[16, 2])
    parser.add_argument("--layout", choices=("best", "nchw", "nhwc"), default="best", help="PyTorch's")
    parser.add_argument("--python", default="/usr/bin/python3", help="the Python that has PyTorch")
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES, help="which of the four to time; ours_bf16 always is")
    parser.add_argument("--json")
    parser.add_argument("rows", nargs="*", metavar="ROW", help="of: " + " ".join(ROWS))
    args = parser.parse_args()
    args.rows = args.rows or ROWS
    for name in args.rows:
        if name not in ct.ROWS:
            parser.error(f"no row {name}; there are: {' '.join(ct.ROWS)}")
    ct.check_products(args.python)
    results = []
    print("| threads | step | batch | PyTorch fp32 ms | PyTorch bf16 ms | ours fp32 ms | ours bf16 ms | our fp32 / bf16 | "
          "PyTorch fp32 / our bf16 | PyTorch bf16 / our bf16 |\n|---|---|---|---|---|---|---|---|---|---|", flush=True)
    try:
        for threads in args.threads:
            results += measure_all(args, threads, lambda r: print(line(r), flush=True))
    except ct.Ended as ended:
        sys.exit(f"compare_bf16.py: {ended}")
    finally:
        if args.json:
            with open(args.json, "w") as f:
                json.dump(results, f, indent=1)


if __name__ == "__main__":
    main()
