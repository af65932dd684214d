#!/usr/bin/python3
"""Training steps of the published networks on a GPU, ours and PyTorch's, on the same card in the same run.

usage: bench/gpu_torch.py [--build build] [--seconds 1.5] [--patience 240] [--json FILE] [NETWORK:BATCH ...]

PyTorch has its models of tests/torch/models.py, channels last, in bf16 (torch.autocast; tf32 where that stays fp32), cuDNN
tuned, fused optimisers, its own attention, data on the device, compiled (torch.compile), and is timed twice: as compiled, and as one CUDA graph
of the whole step; the better of the two counts.  AAE's distances are those of the nearest points alone, without a matrix of all
pairs, CycleGAN's images made before are not kept.  All networks compile at a time, then each is timed with nothing beside it, by
events around steps that follow one another.  Ours (`lockstep bench --device cuda precision=bf16`, for MNIST tf32, which is
faster there) copies a batch from the host in every step.  Memory is the most that was allocated, and for ours what is planned.
"""
import argparse
import json
import multiprocessing
import os
import queue
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "tests", "torch"), os.path.join(ROOT, "bench")]

ROWS = ["mnist:64", "mnist:8192", "resnet18:48", "resnet18:256", "vit:96", "vit:256", "cyclegan:1", "cyclegan:16",
        "cosmogan:64", "cosmogan:256", "aae:32", "aae:128"]
OPTIMISERS = {"mnist": ("sgd", 0.01), "resnet18": ("sgd", 0.1), "vit": ("adam", 1e-4), "cyclegan": ("adam", 2e-4),
              "cosmogan": ("adam", 2e-4), "aae": ("adam", 1e-4)}


def lean_aae(models):
    """AAE with the distance to the nearest point alone: the same loss and gradients, without a matrix of all pairs in memory.  Its
    parts are compiled by themselves: the critic's gradient of a gradient cannot be."""
    import torch
    import torch.nn.functional as F

    @torch.compile(dynamic=False)
    def nearest(a, b):
        with torch.no_grad(), torch.autocast("cuda", enabled=False):
            d = (a.float()[:, :, :, None] - b.float()[:, :, None, :]).square().sum(1)
            at = d.argmin(2)
        return (a - b.gather(2, at[:, None, :].expand(-1, 3, -1))).square().sum()

    @torch.compile(dynamic=False)
    def encode(p, cloud, eps):
        h = cloud.transpose(1, 2)
        for i in range(1, 6):
            h = F.linear(h, p[f"E.conv{i}.weight"][:, :, 0], p[f"E.conv{i}.bias"])
            if i < 5:
                h = F.relu(h)
        h = F.relu(models.linear(p, "E.fc", h.amax(1)))
        return models.linear(p, "E.mu", h) + torch.exp(0.5 * models.linear(p, "E.logvar", h)) * eps

    @torch.compile(dynamic=False)
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
    return torch.compile({"cosmogan": cosmogan, "cyclegan": cyclegan}.get(network, only), dynamic=False)


class Step:
    """A network's step in PyTorch: weights of the record in `folder`, `batch` samples of noise."""

    def __init__(self, network, batch, folder):
        import torch
        import compare_torch
        import models
        from compare_steps import Record, is_state_of_optimiser, is_trained

        models.attention = compare_torch.fastest_attention
        self.torch, record = torch, Record(folder)

        def place(t):
            t = t.cuda()
            return t.contiguous(memory_format=torch.channels_last) if t.dim() == 4 else t

        def widen(name):
            t = record.get(name)
            if t.dtype == torch.int32 or t.dim() == 0:
                return t.cuda() if t.dim() == 0 else t.cuda().long().repeat(batch, *[1] * (t.dim() - 1))
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
        self.optimiser = torch.optim.SGD(mine, lr=lr, momentum=0.9, fused=True) if rule == "sgd" else \
            torch.optim.Adam(mine, lr=lr, fused=True, capturable=True)

    def run(self):
        self.optimiser.zero_grad(set_to_none=True)
        with self.torch.autocast("cuda", dtype=self.torch.bfloat16):
            loss = self.loss(self.p, self.x)
        loss.backward()
        self.optimiser.step()

    def time(self, call, seconds):
        """Milliseconds of a step, of as many in a row as `seconds` hold."""
        torch = self.torch

        def several(n):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for _ in range(n):
                call()
            end.record()
            end.synchronize()
            return begin.elapsed_time(end) / n
        several(3)
        each = several(5)
        return sorted(several(max(3, int(seconds * 1e3 / each / 5))) for _ in range(5))[2]

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


def torch_row(row, folder, seconds, ready, go, turn, out):
    """One process: compiles, says so, and times in its turn once all are told to."""
    network, batch = row.split(":")
    result, begun = {"row": row}, time.monotonic()
    try:
        import torch
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        step = Step(network, int(batch), folder)
        step.run()
        step.run()
        torch.cuda.synchronize()
        result["compile_s"] = round(time.monotonic() - begun, 1)
    except Exception as e:  # another row's figures are still worth having
        out.put(dict(result, error=f"{type(e).__name__}: {e}"[:300]))
        return
    ready.put(row)
    go.wait()
    with turn:
        try:
            torch.backends.cudnn.benchmark = True
            for _ in range(3):
                step.run()
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            result["compiled_ms"] = step.time(step.run, seconds)
            result["MiB"] = torch.cuda.max_memory_allocated() / 2**20
            result["graph_ms"] = step.time(step.graph().replay, seconds)
        except Exception as e:
            result["graph_error"] = f"{type(e).__name__}: {e}"[:300]
        out.put(result)


def torch_rows(args, folder):
    """What PyTorch's processes say of their rows; those that are not compiled within args.patience seconds are left out."""
    context, results = multiprocessing.get_context("spawn"), {}
    ready, go, turn, out = context.Queue(), context.Event(), context.Lock(), context.Queue()
    deadline, compiled = time.monotonic() + args.patience, set()
    processes = {row: context.Process(target=torch_row, args=(row, os.path.join(folder, row.split(":")[0]), args.seconds, ready, go, turn, out))
                 for row in args.rows}

    def note(r):
        results[r["row"]] = r
        print("PyTorch:", json.dumps(r), file=sys.stderr, flush=True)
    for p in processes.values():
        p.start()
    while len(compiled) + len(results) < len(args.rows) and time.monotonic() < deadline:
        while not ready.empty():
            compiled.add(ready.get())
        while not out.empty():
            note(out.get())
        time.sleep(0.1)
    for row in set(args.rows) - compiled - set(results):
        processes[row].kill()
        note({"row": row, "error": f"not compiled in {args.patience:g} s"})
    go.set()
    while len(results) < len(args.rows):
        try:
            note(out.get(timeout=5))
        except queue.Empty:  # nobody speaks for a process that was killed
            for row in set(args.rows) - set(results):
                if not processes[row].is_alive():
                    note({"row": row, "error": f"ended with exit code {processes[row].exitcode}"})
    return results


def our_row(build, row, precision, seconds):
    network, batch = row.split(":")
    done = subprocess.run([os.path.join(build, "lockstep"), "bench", network, "batch.per_rank=" + batch, "precision=" + precision,
                           "--device", "cuda", "--seconds", str(seconds), "--json"], capture_output=True, text=True)
    if done.returncode:
        return {"ours_error": done.stderr.strip()[-300:]}
    o = json.loads(done.stdout.strip().splitlines()[-1])
    return {"ours_ms": 1e3 * o["step_s"]["p50"], "ours_MiB": o["planned_bytes"] / 2**20, "precision": precision}


def line(r):
    best = min([r[k] for k in ("compiled_ms", "graph_ms") if k in r], default=float("nan"))
    network, batch = r["row"].split(":")
    cells = [network, batch] + [f"{r[k]:.4g}" if k in r else "" for k in ("compiled_ms", "graph_ms", "MiB")]
    cells += [f"{r['ours_ms']:.4g} ({r['precision']})", f"{best / r['ours_ms']:.2f}", f"{r['ours_MiB']:.0f}"] if "ours_ms" in r else ["", "", ""]
    return "| " + " | ".join(cells) + " |" + "".join(f" {k}: {r[k]}" for k in r if k.endswith("error"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--patience", type=float, default=240, help="seconds until everything is compiled")
    parser.add_argument("--json")
    parser.add_argument("rows", nargs="*", default=ROWS, metavar="NETWORK:BATCH")
    args = parser.parse_args()
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "2")
    with tempfile.TemporaryDirectory() as folder:
        for network in {row.split(":")[0] for row in args.rows}:
            os.mkdir(os.path.join(folder, network))
            subprocess.run([os.path.join(args.build, "tests", "torch", "torch_steps"), network, "cpu", "1",
                            os.path.join(folder, network), "batch.per_rank=1"], check=True, env=dict(os.environ, LOCKSTEP_TUNE="off"))
        results = torch_rows(args, folder)
    print("| network | batch | PyTorch compiled, ms | as one graph, ms | MiB | ours, ms | times as fast | MiB |\n|---|---|---|---|---|---|---|---|")
    for row in args.rows:
        results[row].update(our_row(args.build, row, "tf32" if row.startswith("mnist:") else "bf16", args.seconds))
        print(line(results[row]), flush=True)
    if args.json:
        with open(args.json, "w") as f:
            json.dump(list(results.values()), f, indent=1)


if __name__ == "__main__":
    main()
