#!/usr/bin/python3
"""Weak scaling on one machine, ours beside PyTorch DDP over Gloo, in one run; 1 thread a rank, batch 64 a rank.

usage: bench/scale_ddp.py [--ranks 1,2,4,8,16] [--nets mnist,mnist-keras,resnet18-cifar] [--rounds 3] [--seconds 1.5]
                          [--budget 420] [--lockstep build/lockstep] [--python PYTHON] [--layout nchw|nhwc] [--json FILE]

For every number of ranks PyTorch's processes are started once; then each round measures, net by net, PyTorch for a while and
Lockstep for a while, and as many single ranks of Lockstep at once that exchange nothing ("apart": what cores that share caches,
memory and their pipelines allow at all; "slowest": as many times the slowest of them, which is what ranks that wait for one
another can reach).  A cell is the median over rounds of images/s of all ranks (from the median step of each round); efficiency
is against the same side's one rank.  Rounds that no longer fit into --budget seconds are left out (the table says how many were
taken).  Launch: from the start of the command to the end of the first training step of mnist.  Beside it stands the memory
bandwidth of as many processes at once (copy and triad, bytes read and written), and what each of them computes in its own caches
(products of small matrices): virtual cores that share a physical one lose there, too.  PyTorch's rank r may use its share of the
cores (its Gloo threads need some, too); ours is bound to one core by its launcher.
"""
import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench"))
from compare_torch import TUNED, check_products  # noqa: E402

OPTIMISER = {
    "mnist": ["optimizer.name=sgd", "optimizer.lr=0.01", "optimizer.momentum=0.5"],
    "mnist-keras": ["optimizer.name=adam", "optimizer.lr=0.001"],
    "resnet18-cifar": ["optimizer.name=sgd", "optimizer.lr=0.01", "optimizer.momentum=0.9"],
}
PROBE_BYTES = 64 << 20
PROBE_WIDTH = 96  # of square matrices: three of them lie in a core's own caches


# --- PyTorch's side -------------------------------------------------------------------------------------------------
def make_net(name):
    import torch.nn as nn

    def block(c_in, c_out, stride):
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv1 = nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False)
                self.bn1 = nn.BatchNorm2d(c_out)
                self.conv2 = nn.Conv2d(c_out, c_out, 3, 1, 1, bias=False)
                self.bn2 = nn.BatchNorm2d(c_out)
                self.relu = nn.ReLU(inplace=True)
                self.down = None
                if stride != 1 or c_in != c_out:
                    self.down = nn.Sequential(nn.Conv2d(c_in, c_out, 1, stride, bias=False), nn.BatchNorm2d(c_out))

            def forward(self, x):
                y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
                return self.relu(y + (x if self.down is None else self.down(x)))
        return Block()

    if name == "mnist":
        return nn.Sequential(nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(10, 20, 5), nn.Dropout2d(), nn.MaxPool2d(2),
                             nn.ReLU(), nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Dropout(), nn.Linear(50, 10))
    if name == "mnist-keras":
        return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25),
                             nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10))
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    c = 64
    for c_out, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [block(c, c_out, stride), block(c_out, c_out, 1)]
        c = c_out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def worker(rank, ranks, port, batch, layout):
    """Reads "NET STEPS" or "probe SECONDS" lines; prints a JSON line for each, and one after its first step."""
    cores = sorted(os.sched_getaffinity(0))
    share = max(1, len(cores) // ranks)
    first = rank * share % len(cores)
    os.sched_setaffinity(0, set(cores[first:first + share]))
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    torch.manual_seed(1)
    if ranks > 1:
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
    nets = {}

    def prepare(name):
        size = 32 if name.startswith("resnet") else 28
        net = make_net(name)
        x = torch.randn(batch, 3 if size == 32 else 1, size, size)
        if layout == "nhwc":
            net, x = net.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
        if ranks > 1:
            net = torch.nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=True)
        momentum = 0.9 if name.startswith("resnet") else 0.5
        o = (torch.optim.Adam(net.parameters(), lr=0.001) if name == "mnist-keras"
             else torch.optim.SGD(net.parameters(), lr=0.01, momentum=momentum))
        return net, o, x, torch.randint(0, 10, (batch,))

    def step(name):
        if name not in nets:
            nets[name] = prepare(name)
        net, o, x, labels = nets[name]
        o.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(net(x), labels).backward()
        o.step()

    def barrier():
        if ranks > 1:
            dist.barrier()

    def probe(seconds):
        n = PROBE_BYTES // 4
        a, b, c = (torch.full((n,), 1.0) for _ in range(3))
        rates = {}
        for kind, streams in (("copy", 2), ("triad", 3)):
            barrier()
            done, start = 0, time.perf_counter()
            while done < 3 or time.perf_counter() - start < seconds:
                a.copy_(b) if kind == "copy" else torch.add(b, c, alpha=0.5, out=a)
                done += 1
            rates[kind] = done * streams * PROBE_BYTES / (time.perf_counter() - start)
        x, y, z = (torch.full((PROBE_WIDTH, PROBE_WIDTH), 1.0 / PROBE_WIDTH) for _ in range(3))
        barrier()
        done, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            for _ in range(100):
                torch.mm(x, y, out=z)
            done += 100
        rates["compute"] = done * 2 * PROBE_WIDTH ** 3 / (time.perf_counter() - start)
        return rates

    def say(o):
        print(json.dumps(o), flush=True)

    step("mnist")
    say({"first": time.time()})
    for line in sys.stdin:
        what, amount = line.split()
        if what == "probe":
            say(probe(float(amount)))
            continue
        step(what)
        barrier()
        times = []
        for _ in range(int(amount)):
            start = time.perf_counter()
            step(what)
            times.append(time.perf_counter() - start)
        say({"step_s": statistics.median(times)})


class Group:
    """PyTorch's processes for one number of ranks."""

    def __init__(self, a, ranks):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        env = dict(os.environ, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", **TUNED)
        start = time.time()
        self.workers = [subprocess.Popen([a.python, os.path.abspath(__file__), "--worker", str(r), str(ranks), str(port),
                                          str(a.batch), a.layout], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
                        for r in range(ranks)]
        self.launch_s = max(o["first"] for o in self.answers()) - start

    def answers(self):
        return [json.loads(w.stdout.readline()) for w in self.workers]

    def ask(self, line):
        for w in self.workers:
            w.stdin.write(line + "\n")
            w.stdin.flush()
        return self.answers()

    def step_s(self, net, seconds):
        guess = max(o["step_s"] for o in self.ask(f"{net} 3"))
        return max(o["step_s"] for o in self.ask(f"{net} {max(5, min(5000, int(seconds / guess)))}"))

    def close(self):
        for w in self.workers:
            w.stdin.close()
        for w in self.workers:
            try:
                w.wait(10)
            except subprocess.TimeoutExpired:
                w.kill()
                w.wait()


# --- our side -------------------------------------------------------------------------------------------------------
def our_bench(a, net, ranks):
    out = subprocess.run([a.lockstep, "bench", net, "-n", str(ranks), "--threads", "1", f"batch.per_rank={a.batch}", "--seconds",
                          str(a.seconds), "--json", *OPTIMISER[net]], check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(out.splitlines()[-1])


def our_apart(a, net, ranks):
    """As many single ranks at once, each on a core of its own, that exchange nothing: what the machine itself allows."""
    cores = sorted(os.sched_getaffinity(0))
    command = [a.lockstep, "bench", net, "--threads", "1", f"batch.per_rank={a.batch}", "--seconds", str(a.seconds), "--json",
               *OPTIMISER[net]]
    running = [subprocess.Popen(["taskset", "-c", str(cores[r % len(cores)]), *command], stdout=subprocess.PIPE, text=True)
               for r in range(ranks)]
    rates = [json.loads(p.communicate()[0].splitlines()[-1])["samples_per_s"]["p50"] for p in running]
    return sum(rates), ranks * min(rates)


def our_launch_s(a, ranks):
    """Until the report of the first step; the run goes on to its end."""
    folder = tempfile.mkdtemp()
    start = time.time()
    p = subprocess.Popen([a.lockstep, "train", "mnist", "-n", str(ranks), "--threads", "1", f"batch.per_rank={a.batch}", "--json",
                          "data.kind=synthetic", f"data.train_range=0:{a.batch * ranks}", "data.test_range=8192:8256",
                          "train.steps=1", "--run-dir", os.path.join(folder, "run")], stdout=subprocess.PIPE, text=True)
    taken = None
    for line in p.stdout:
        if taken is None and json.loads(line).get("event") in ("step", "epoch", "summary"):
            taken = time.time() - start
    p.wait()
    shutil.rmtree(folder)
    return taken


# --- the study ------------------------------------------------------------------------------------------------------
def measure(a, ranks, end, cells, launches):
    share_end = time.time() + max(0, end - time.time())
    launches[ranks] = {"ours_s": our_launch_s(a, ranks)}
    group = Group(a, ranks)
    try:
        launches[ranks]["torch_s"] = group.launch_s
        rates = group.ask("probe 0.3")
        launches[ranks]["copy_b_s"] = sum(o["copy"] for o in rates)
        launches[ranks]["triad_b_s"] = sum(o["triad"] for o in rates)
        launches[ranks]["compute_flop_s"] = sum(o["compute"] for o in rates)
        launches[ranks]["slowest_flop_s"] = min(o["compute"] for o in rates)
        for k in range(a.rounds):
            for net in a.nets:
                if k > 0 and time.time() > share_end:
                    return
                torch_s = group.step_s(net, a.seconds)
                ours = our_bench(a, net, ranks)
                apart, slowest = our_apart(a, net, ranks)
                cells.setdefault((net, ranks), []).append(
                    {"torch": a.batch * ranks / torch_s, "ours": ours["samples_per_s"]["p50"], "apart": apart, "slowest": slowest,
                     "exposed_s": ours["comm_exposed_s"], "step_s": ours["step_s"]["p50"]})
    finally:
        group.close()


def table(a, cells):
    rows = []
    for net in a.nets:
        one = None
        for r in a.ranks:
            rounds = cells.get((net, r))
            if not rounds:
                continue
            row = {"net": net, "ranks": r, "rounds": len(rounds),
                   "ours": statistics.median(c["ours"] for c in rounds), "torch": statistics.median(c["torch"] for c in rounds),
                   "ratio": statistics.median(c["ours"] / c["torch"] for c in rounds),
                   "apart": statistics.median(c["apart"] for c in rounds),
                   "slowest": statistics.median(c["slowest"] for c in rounds),
                   "of_apart": statistics.median(c["ours"] / c["apart"] for c in rounds),
                   "exposed_share": statistics.median(c["exposed_s"] / c["step_s"] for c in rounds)}
            one = one or row
            for side in ("ours", "torch", "apart", "slowest"):
                row["efficiency_" + side] = row[side] / row["ranks"] / (one[side] / one["ranks"])
            rows.append(row)
    return rows


def print_report(rows, launches):
    print(f"{'net':16} {'ranks':>5} {'ours img/s':>12} {'PyTorch':>12} {'ratio':>7} {'eff. ours':>10} {'eff. PyT.':>10} {'eff. apart':>10} {'slowest':>8} {'of apart':>9} {'exposed':>8} {'rounds':>6}")
    for r in rows:
        print(f"{r['net']:16} {r['ranks']:5d} {r['ours']:12.0f} {r['torch']:12.0f} {r['ratio']:7.2f} {100 * r['efficiency_ours']:9.1f}% "
              f"{100 * r['efficiency_torch']:9.1f}% {100 * r['efficiency_apart']:9.1f}% {100 * r['efficiency_slowest']:7.1f}% {100 * r['of_apart']:8.1f}% "
              f"{100 * r['exposed_share']:7.1f}% {r['rounds']:6d}")
    print(f"\n{'ranks':>5} {'launch ours s':>14} {'PyTorch s':>10} {'copy GB/s':>10} {'triad GB/s':>11} {'GFLOP/s a rank':>15} {'slowest':>8}")
    for n, o in sorted(launches.items()):
        print(f"{n:5d} {o['ours_s']:14.2f} {o.get('torch_s', float('nan')):10.2f} {o.get('copy_b_s', 0) / 1e9:10.1f} {o.get('triad_b_s', 0) / 1e9:11.1f} "
              f"{o.get('compute_flop_s', 0) / n / 1e9:15.1f} {o.get('slowest_flop_s', 0) / 1e9:8.1f}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ranks", default="1,2,4,8,16", type=lambda t: [int(n) for n in t.split(",")])
    p.add_argument("--nets", default="mnist,mnist-keras,resnet18-cifar", type=lambda t: t.split(","))
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=1.5, help="of each side in a round")
    p.add_argument("--budget", type=float, default=420, help="seconds of the whole study, about")
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--layout", choices=("nchw", "nhwc"), default="nchw", help="PyTorch's")
    p.add_argument("--lockstep", default=os.path.join(ROOT, "build", "lockstep"))
    p.add_argument("--python", default=sys.executable)
    p.add_argument("--json")
    a = p.parse_args()
    check_products(a.python)
    begun, cells, launches = time.time(), {}, {}
    our_bench(argparse.Namespace(**{**vars(a), "seconds": 0.1}), a.nets[0], 1)  # the disk's caches, for both launches
    for net in a.nets:
        our_bench(argparse.Namespace(**{**vars(a), "seconds": 0.1}), net, 1)  # kernels are chosen once per machine
    for i, ranks in enumerate(a.ranks):
        now = time.time()
        # More ranks take longer: what is left is shared by weight.
        weights = [1 + r / 8 for r in a.ranks[i:]]
        end = now + (begun + a.budget - now) * weights[0] / sum(weights)
        print(f"{ranks} ranks ...", file=sys.stderr, flush=True)
        measure(a, ranks, end, cells, launches)
    rows = table(a, cells)
    print_report(rows, launches)
    print(f"\n{len(os.sched_getaffinity(0))} cores, batch {a.batch} a rank, 1 thread a rank, {time.time() - begun:.0f} s")
    if a.json:
        with open(a.json, "w") as f:
            json.dump({"cores": len(os.sched_getaffinity(0)), "batch": a.batch, "layout": a.layout, "rows": rows,
                       "launch": [{"ranks": n, **o} for n, o in sorted(launches.items())]}, f, indent=1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]), sys.argv[6])
    else:
        main()
