#!/usr/bin/python3
"""Training steps of the published networks on a GPU, ours and PyTorch's, on the same card in the same run.

usage: bench/gpu_torch.py [--build build] [--seconds 1.5] [--budget 500] [--compilers 4] [--cache DIR] [--pack FILE.tar.gz]
                          [--json FILE] [--device cuda|cpu] [NETWORK:BATCH ...]

PyTorch has its models of tests/torch/models.py, channels last, in bf16 (torch.autocast; tf32 where that stays fp32), cuDNN
tuned, fused optimisers, its own attention, data on the device, compiled (torch.compile), and is timed twice: as compiled, and as
one CUDA graph of the whole step; the better of the two counts.  AAE's distances are those of the nearest points alone, without a
matrix of all pairs, CycleGAN's images made before are not kept.  Ours (`lockstep bench --device cuda precision=bf16`, for MNIST
tf32, which is faster there) copies a batch from the host in every step.

Rows go in groups of --compilers: those of a group compile side by side, each with its share of the cores; then each is timed by
events around steps that follow one another, ours right after PyTorch's, while nothing compiles.  What cannot be had within --budget
seconds is named, and the next call can have it: compiled parts are kept in --cache, and with --pack in one file that another
machine can have (same path of the cache, same PyTorch, same card): unpacked at the start if the cache is not there, written at the end.
The results of calls with the same --json are one table.

Memory: of PyTorch the most that its tensors took, and the most that its allocator took of the card; of ours what is planned, and what
the device has given out.  --device cpu goes through all of it without a GPU, not compiled: to try the script, not for figures.
"""
import argparse
import json
import multiprocessing
import os
import queue
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "tests", "torch"), os.path.join(ROOT, "bench")]

ROWS = ["mnist:64", "mnist:8192", "resnet18:48", "resnet18:256", "vit:96", "vit:256", "cyclegan:1", "cyclegan:16",
        "cosmogan:64", "cosmogan:256", "aae:32", "aae:128"]
OPTIMISERS = {"mnist": ("sgd", 0.01), "resnet18": ("sgd", 0.1), "vit": ("adam", 1e-4), "cyclegan": ("adam", 2e-4),
              "cosmogan": ("adam", 2e-4), "aae": ("adam", 1e-4)}


TURN_S = 45  # that timing one row takes at most, both sides: no group is begun, and no compiler waited for, in the last of the budget


def compiled(function):
    """torch.compile where it is there and worth it."""
    import torch
    return torch.compile(function, dynamic=False) if hasattr(torch, "compile") and torch.cuda.is_available() else function


def lean_aae(models):
    """AAE with the distance to the nearest point alone: the same loss and gradients, without a matrix of all pairs in memory.  Its
    parts are compiled by themselves: the critic's gradient of a gradient cannot be."""
    import torch
    import torch.nn.functional as F

    @compiled
    def nearest(a, b):
        with torch.no_grad(), torch.autocast(a.device.type, enabled=False):
            d = (a.float()[:, :, :, None] - b.float()[:, :, None, :]).square().sum(1)
            at = d.argmin(2)
        return (a - b.gather(2, at[:, None, :].expand(-1, 3, -1))).square().sum()

    @compiled
    def encode(p, cloud, eps):
        h = cloud.transpose(1, 2)
        for i in range(1, 6):
            h = F.linear(h, p[f"E.conv{i}.weight"][:, :, 0], p[f"E.conv{i}.bias"])
            if i < 5:
                h = F.relu(h)
        h = F.relu(models.linear(p, "E.fc", h.amax(1)))
        return models.linear(p, "E.mu", h) + torch.exp(0.5 * models.linear(p, "E.logvar", h)) * eps

    @compiled
    def decode(p, code, points):
        return models.mlp(p, "G", code).view(-1, 3, points).float()

    def aae(p, x):
        cloud, fixed = x["cloud"], without_gradients(p, "D.")
        code = encode(p, cloud, x["eps"])
        made = decode(p, code, cloud.shape[2])
        rec = nearest(cloud, made) + nearest(made, cloud)
        return (models.critic_loss(p, x, code.detach()) + 0.5 * rec * (32 / cloud.shape[0]) - models.mlp(fixed, "D", code).mean())
    return aae


def without_gradients(p, prefix):
    return {n: t.detach() if n.startswith(prefix) else t for n, t in p.items()}


def total_loss(network, models):
    """One loss whose gradients are those of all of a network's losses: what another loss trains has none in this one."""
    import torch
    import torch.nn.functional as F

    def mse(t, target):
        return F.mse_loss(t, torch.full_like(t, target))

    def cosmogan(p, x):
        fake, judge = models.dcgan_generator(p, x["z"]), models.dcgan_discriminator
        d_loss = models.bce(judge(p, x["image"]), 1.0) + models.bce(judge(p, fake.detach()), 0.0)
        return d_loss + models.bce(judge(without_gradients(p, "D."), fake), 1.0)

    def cyclegan(p, x):
        a, b, make, judge = x["image_a"], x["image_b"], models.cyclegan_generator, models.cyclegan_discriminator
        fixed = without_gradients(p, "D_")
        identity = (F.l1_loss(make(p, "G_BA", a), a) + F.l1_loss(make(p, "G_AB", b), b)) / 2
        fake_b, fake_a = make(p, "G_AB", a), make(p, "G_BA", b)
        gan = (mse(judge(fixed, "D_B", fake_b), 1.0) + mse(judge(fixed, "D_A", fake_a), 1.0)) / 2
        cycle = (F.l1_loss(make(p, "G_BA", fake_b), a) + F.l1_loss(make(p, "G_AB", fake_a), b)) / 2
        loss = gan + 10 * cycle + 5 * identity
        for d, real, fake in (("D_A", a, fake_a), ("D_B", b, fake_b)):
            loss = loss + (mse(judge(p, d, real), 1.0) + mse(judge(p, d, fake.detach()), 0.0)) / 2
        return loss

    def only(p, x):
        (loss, _, _), = models.MODELS[network](p, x, drop=True)
        return loss
    if network == "aae":
        return lean_aae(models)
    return compiled({"cosmogan": cosmogan, "cyclegan": cyclegan}.get(network, only))


class Step:
    """A network's step in PyTorch: weights of the record in `folder`, `batch` samples of noise."""

    def __init__(self, network, batch, folder, device):
        import torch
        import compare_torch
        import models
        from compare_steps import Record, is_state_of_optimiser, is_trained

        if hasattr(torch.nn.functional, "scaled_dot_product_attention"):
            models.attention = compare_torch.fastest_attention
        self.torch, self.device, record = torch, device, Record(folder)

        def place(t):
            t = t.to(device)
            return t.contiguous(memory_format=torch.channels_last) if t.dim() == 4 else t

        def widen(name):
            t = record.get(name)
            if t.dtype == torch.int32 or t.dim() == 0:
                return t.to(device) if t.dim() == 0 else t.to(device).long().repeat(batch, *[1] * (t.dim() - 1))
            return place(torch.randn(batch, *t.shape[1:]))
        self.p = {n: place(record.get("init/" + n)) for n in record.names("init/") if not is_state_of_optimiser(n)
                  and not n.startswith("replay_")}
        self.trained = [n for n in self.p if is_trained(n)]
        for n in self.trained:
            self.p[n].requires_grad_(True)
        names = {n: "0/in/" + n for n in record.names("0/in/")}
        names.update({n: "0/draw/" + n for n in record.names("0/draw/") if n != "flip" and not n.startswith("replay_")})
        self.x = {n: widen(full) for n, full in names.items()}
        self.loss = total_loss(network, models)
        rule, lr = OPTIMISERS[network]
        mine = [self.p[n] for n in self.trained]
        fastest = {"sgd": {"fused": True}, "adam": {"fused": True, "capturable": True}}[rule] if device == "cuda" else {}
        self.optimiser = torch.optim.SGD(mine, lr=lr, momentum=0.9, **fastest) if rule == "sgd" else torch.optim.Adam(mine, lr=lr, **fastest)

    def run(self):
        self.optimiser.zero_grad(set_to_none=True)
        with self.torch.autocast(self.device, dtype=self.torch.bfloat16, enabled=self.device == "cuda"):
            loss = self.loss(self.p, self.x)
        loss.backward()
        self.optimiser.step()

    def several(self, call, n):
        """Milliseconds of each of n steps that follow one another."""
        torch = self.torch
        if self.device == "cpu":
            begun = time.perf_counter()
            for _ in range(n):
                call()
            return (time.perf_counter() - begun) * 1e3 / n
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(n):
            call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / n

    def time(self, call, seconds):
        """Milliseconds of a step, of as many in a row as `seconds` hold."""
        self.several(call, 3)
        each = self.several(call, 5)
        return sorted(self.several(call, max(3, int(seconds * 1e3 / each / 5))) for _ in range(5))[2]

    def graph(self):
        torch = self.torch
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.run()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.run()
        return graph


def time_both_ways(step, seconds, result):
    """As compiled, then as a graph; what fails second leaves the first.  cuDNN chooses now, with nothing beside it."""
    torch = step.torch
    torch.backends.cudnn.benchmark = True
    for _ in range(3):
        step.run()
    if step.device == "cpu":
        result["compiled_ms"] = step.time(step.run, seconds)
        return
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    result["compiled_ms"] = step.time(step.run, seconds)
    result["MiB"] = torch.cuda.max_memory_allocated() / 2**20
    result["reserved_MiB"] = torch.cuda.max_memory_reserved() / 2**20
    result["graph_ms"] = step.time(step.graph().replay, seconds)


def torch_row(row, folder, args, out, go):
    """One process: compiles, says so, and times when it is told to."""
    network, batch = row.split(":")
    result, begun = {"row": row}, time.monotonic()
    try:
        import torch
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        step = Step(network, int(batch), folder, args.device)
        step.run()
        step.run()
        if args.device == "cuda":
            torch.cuda.synchronize()
        result["compile_s"] = round(time.monotonic() - begun, 1)
        result["versions"] = f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}"
        out.put(("compiled", row, None))
        go.wait()
        time_both_ways(step, args.seconds, result)
    except Exception as e:  # another row's figures are still worth having
        result["error"] = f"{type(e).__name__}: {e}"[:300]
    out.put(("done", row, result))


class Group:
    """PyTorch's processes of a few rows."""

    def __init__(self, rows, folder, args):
        context = multiprocessing.get_context("spawn")
        self.out, self.results, self.compiled = context.Queue(), {}, set()
        self.go = {row: context.Event() for row in rows}
        self.processes = {row: context.Process(target=torch_row, args=(row, os.path.join(folder, row.split(":")[0]), args, self.out, self.go[row]))
                          for row in rows}
        for p in self.processes.values():
            p.start()

    def listen(self, seconds):
        """Takes what a process says next, or finds that one says nothing any more."""
        try:
            what, row, result = self.out.get(timeout=seconds)
            if what == "compiled":
                self.compiled.add(row)
            else:
                self.results[row] = result
        except queue.Empty:  # nobody speaks for a process that was killed
            for row, p in self.processes.items():
                if row not in self.results and not p.is_alive() and self.out.empty():
                    self.results[row] = {"row": row, "error": f"ended with exit code {p.exitcode}"}

    def compile(self, deadline):
        """Until all are compiled, or the time is up: those that are not are ended."""
        while len(self.compiled | set(self.results)) < len(self.processes) and time.monotonic() < deadline:
            self.listen(1)
        for row, p in self.processes.items():
            if row not in self.compiled and row not in self.results:
                p.kill()
                self.results[row] = {"row": row, "error": "not compiled in time; what is ready is kept"}

    def time(self, row):
        """The figures of a row.  Its process is gone afterwards, with its memory."""
        self.go[row].set()
        while row not in self.results:
            self.listen(1)
        self.processes[row].join(20)
        self.processes[row].kill()
        return self.results[row]


def our_row(args, row):
    network, batch = row.split(":")
    precision = "fp32" if args.device == "cpu" else "tf32" if network == "mnist" else "bf16"
    rule = ["optimizer.name=sgd", "optimizer.momentum=0.9"] if OPTIMISERS[network][0] == "sgd" else []
    done = subprocess.run([os.path.join(args.build, "lockstep"), "bench", network, "batch.per_rank=" + batch, "precision=" + precision, *rule,
                           "--device", args.device, "--seconds", str(args.seconds), "--json"], capture_output=True, text=True)
    if done.returncode:
        return {"ours_error": done.stderr.strip()[-300:]}
    o = json.loads(done.stdout.strip().splitlines()[-1])
    return {"ours_ms": 1e3 * o["step_s"]["p50"], "ours_MiB": o["planned_bytes"] / 2**20, "ours_used_MiB": o["used_bytes"] / 2**20,
            "precision": precision, "ours_version": o["version"]}


HEADER = """| network | batch | PyTorch compiled, ms | as one graph, ms | ours, ms | times as fast | PyTorch's tensors, MiB | its allocator, MiB | ours planned, MiB | used, MiB |
|---|---|---|---|---|---|---|---|---|---|"""


def line(r):
    best = min([r[k] for k in ("compiled_ms", "graph_ms") if k in r], default=None)
    network, batch = r["row"].split(":")
    cells = [network, batch] + [f"{r[k]:.4g}" if k in r else "" for k in ("compiled_ms", "graph_ms")]
    cells += [f"{r['ours_ms']:.4g} ({r['precision']})" if "ours_ms" in r else "", f"{best / r['ours_ms']:.2f}" if best and "ours_ms" in r else ""]
    cells += [f"{r[k]:.0f}" if k in r else "" for k in ("MiB", "reserved_MiB", "ours_MiB", "ours_used_MiB")]
    return "| " + " | ".join(cells) + " |" + "".join(f" {k}: {r[k]}" for k in r if k.endswith("error"))


def open_cache(args):
    """Where compiled parts are kept, for this process and those that it starts."""
    if args.pack and os.path.exists(args.pack) and not os.path.isdir(args.cache):
        with tarfile.open(args.pack) as f:
            f.extractall(args.cache)
    os.makedirs(args.cache, exist_ok=True)
    os.environ.update(TORCHINDUCTOR_CACHE_DIR=os.path.join(args.cache, "inductor"), TRITON_CACHE_DIR=os.path.join(args.cache, "triton"),
                      TORCHINDUCTOR_FX_GRAPH_CACHE="1", TORCHINDUCTOR_AUTOGRAD_CACHE="1")
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(max(1, (os.cpu_count() or 1) // args.compilers)))


def close_cache(args):
    files = [os.path.join(d, f) for d, _, names in os.walk(args.cache) for f in names]
    print(f"compiled parts: {args.cache}, {len(files)} files, {sum(map(os.path.getsize, files)) / 2**20:.0f} MiB", file=sys.stderr)
    if args.pack:
        with tarfile.open(args.pack, "w:gz") as f:
            f.add(args.cache, arcname=".")
        print(f"packed: {args.pack}, {os.path.getsize(args.pack) / 2**20:.1f} MiB", file=sys.stderr)


def write_records(args, folder):
    """Weights and inputs of a step of each network, by which PyTorch's begins."""
    started = []
    for network in {row.split(":")[0] for row in args.rows}:
        os.mkdir(os.path.join(folder, network))
        started.append(subprocess.Popen([os.path.join(args.build, "tests", "torch", "torch_steps"), network, "cpu", "1",
                                         os.path.join(folder, network), "batch.per_rank=1"], env=dict(os.environ, LOCKSTEP_TUNE="off")))
    if any([p.wait() for p in started]):
        sys.exit("gpu_torch.py: torch_steps failed")


def measure(args, folder, deadline, results):
    """Group after group, as long as there is time; results are added row by row."""
    def note(r):
        results[r["row"]] = r
        print(json.dumps(r), file=sys.stderr, flush=True)
    for at in range(0, len(args.rows), args.compilers):
        rows = args.rows[at:at + args.compilers]
        if time.monotonic() + TURN_S * len(rows) > deadline:
            for row in rows:
                results.setdefault(row, {"row": row, "error": "not begun: the budget is spent"})
            continue
        group = Group(rows, folder, args)
        group.compile(deadline - TURN_S * len(rows))
        for row in rows:
            note(dict(group.time(row), **our_row(args, row)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--budget", type=float, default=500, help="seconds for everything")
    parser.add_argument("--compilers", type=int, default=4, help="rows that compile side by side")
    parser.add_argument("--cache", default="/tmp/lockstep-gpu-torch", help="folder of compiled parts")
    parser.add_argument("--pack", help="file that keeps that folder between machines")
    parser.add_argument("--json")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("rows", nargs="*", default=ROWS, metavar="NETWORK:BATCH")
    args = parser.parse_args()
    results, deadline = {}, time.monotonic() + args.budget
    if args.json and os.path.exists(args.json):
        with open(args.json) as f:
            results = {r["row"]: r for r in json.load(f)}
    open_cache(args)
    with tempfile.TemporaryDirectory() as folder:
        write_records(args, folder)
        measure(args, folder, deadline, results)
    close_cache(args)
    if args.json:
        with open(args.json, "w") as f:
            json.dump(list(results.values()), f, indent=1)
    print(next((r["versions"] for r in results.values() if "versions" in r), ""))
    print(HEADER)
    for row in sorted(results, key=lambda r: ROWS.index(r) if r in ROWS else len(ROWS)):
        print(line(results[row]))


if __name__ == "__main__":
    main()
