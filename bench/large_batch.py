#!/usr/bin/env python3
"""The large-batch study (docs/studies/large-batch.md): accuracy against ranks, with and without a warm-up.

usage: bench/large_batch.py [--images digits|clothes] [--data FOLDER] [--lockstep build/lockstep] [--work build/large-batch]
                            [--jobs 2] [--seeds 42,1,2] [--report] [--out docs/studies] [SERIES[:RANKS] ...]

Trains every point of the study (or those named: `none`, `warmup:128`), several at a time and with one thread each, then
writes OUT/large-batch-IMAGES.csv and two plots beside it.  Digits are the four files of MNIST in --data FOLDER; clothes are
Fashion-MNIST, which has the same form (Debian's dataset-fashion-mnist unless --data says otherwise).  It may be stopped with Ctrl-C at any time and called again: runs that
are complete are not repeated, others go on from their last checkpoint.  --report only writes what is there already.

A rank of the study is a batch of 64 images whose gradient is added up (parallel.accumulate): the update depends on the
global batch and the learning rate alone.  The first thing that is run is the proof: the same five updates of 128 batches by
one process, and by two of 64 batches each, end with the same bits.
"""
import argparse
import concurrent.futures
import csv
import json
import os
import shutil
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RANKS = (8, 16, 32, 64, 128, 256)
EXPERIMENT = "mnist-largebatch"

# What suits the images: epochs of the warm-up alone, and the length beyond which gradients are shortened.
IMAGES = {"digits": ("16ep", 0.5), "clothes": ("10ep", 0.2)}
# series: what it is called in the plots, its colour, its settings
SERIES = {
    "none": ("no warm-up", "#c0392b", []),
    "cut": ("clipped, no warm-up", "#d68910", ["lr.schedule=cosine", "parallel.clip_norm={clip}"]),
    "warmup": ("warm-up", "#1f6fb2", ["lr.warmup={warmup}"]),
    "clip": ("warm-up, clipped", "#8e44ad", ["lr.warmup=10ep", "lr.schedule=cosine", "parallel.clip_norm={clip}"]),
    "lars": ("LARS", "#2e8b57", ["optimizer.name=lars", "optimizer.momentum=0.9", "optimizer.trust=0.1", "lr.scale=sqrt",
                                 "lr.warmup=5ep", "lr.schedule=cosine"]),
}
REPEATED = 64  # from so many ranks on every seed of every series is run; below, where all is well, "none" with the first
CHANCE = 0.1


def points(names, seeds):
    """All (series, ranks, seed) to run, those that matter most first."""
    chosen = []
    for name in names or SERIES:
        series, _, ranks = name.partition(":")
        if series not in SERIES or (ranks and int(ranks) not in RANKS):
            sys.exit(f"{name}: expected one of {', '.join(SERIES)}, with :RANKS or without")
        chosen += [(series, r) for r in RANKS if not ranks or r == int(ranks)]
    chosen.sort(key=lambda p: -p[1])
    return [(*p, seed) for seed in seeds for p in chosen if p[1] >= REPEATED or (p[0] == "none" and seed == seeds[0])]


# -- running ----------------------------------------------------------------------------------------------------------


def folder_of(work, point):
    return os.path.join(work, "{}-{}-{}".format(*point))


def summary_of(folder):
    try:
        with open(os.path.join(folder, "summary.json")) as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}


def lockstep(args, *arguments):
    # One thread: several runs at a time are faster than one run with several threads, and exactly repeatable.
    env = dict(os.environ, LOCKSTEP_THREADS="1")
    env.setdefault("LOCKSTEP_EXPERIMENTS", os.path.join(ROOT, "experiments"))
    data = [f"data.path={os.path.abspath(args.data)}"] if args.data else []
    command = [os.path.abspath(args.lockstep), "train", EXPERIMENT, *data, *arguments, "--quiet"]
    done = subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stderr


def is_done(folder):
    """A run that diverged has ended, too: its weights are not numbers."""
    summary = summary_of(folder)
    return summary.get("state") == "completed" or "diverged" in summary.get("error", "")


def train(args, point):
    """Trains one point; returns a line to print."""
    series, ranks, seed = point
    folder = folder_of(args.work, point)
    if is_done(folder):
        return "there already"
    begun = os.path.exists(os.path.join(folder, "checkpoints", "last"))
    if not begun:  # killed before its first checkpoint
        shutil.rmtree(folder, ignore_errors=True)
    warmup, clip = IMAGES[args.images]
    settings = [text.format(warmup=warmup, clip=clip) for text in SERIES[series][2]]
    code, words = lockstep(args, f"parallel.accumulate={ranks}", f"seed={seed}", *settings,
                           f"--resume={folder}" if begun else f"--run-dir={folder}")
    if not is_done(folder):
        return f"exit code {code}: {words.strip()}"
    return "diverged" if code != 0 else "{:.2f} %".format(100 * summary_of(folder)["metrics"]["test"]["acc"])


def prove(args):
    """One process and two give the same bits when the global batch is the same."""
    results = []
    for ranks, accumulate in ((1, 128), (2, 64)):
        folder = os.path.join(args.work, f"proof-{ranks}")
        if summary_of(folder).get("state") != "completed":
            code, words = lockstep(args, f"parallel.accumulate={accumulate}", "reproducible=true", "train.steps=5", "-n",
                                   str(ranks), f"--run-dir={folder}")
            if code != 0:
                sys.exit(f"the proof, {ranks} ranks: exit code {code}: {words}")
        results.append(summary_of(folder)["weights_xxh3"])
        print(f"proof: {ranks} x {accumulate} x 64 images, 5 updates: weights {results[-1]}", flush=True)
    if results[0] != results[1]:
        sys.exit("the proof failed: the study may not emulate ranks by adding up batches")


def run_all(args, todo):
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        runs = {pool.submit(train, args, p): p for p in todo}
        try:
            for k, done in enumerate(concurrent.futures.as_completed(runs), 1):
                print("[{}/{}] {} {} ranks, seed {}: {}".format(k, len(runs), *runs[done], done.result()), flush=True)
                failed += done.result().startswith("exit")
        except KeyboardInterrupt:
            # The runs have got the signal, too, and are writing their checkpoints.
            pool.shutdown(wait=True, cancel_futures=True)
            sys.exit("stopped; the same command goes on")
    return failed


# -- reporting --------------------------------------------------------------------------------------------------------


def read(work, point):
    """A row of the table, or None when the run is not complete.  What diverged predicts nothing: its accuracy is 0."""
    series, ranks, seed = point
    folder = folder_of(work, point)
    if not is_done(folder):
        return None
    with open(os.path.join(folder, "metrics.jsonl")) as f:
        lines = [json.loads(line) for line in f]
    diverged = summary_of(folder)["state"] != "completed"
    accuracy = [x["val/acc_epoch"] for x in lines if "val/acc_epoch" in x] + [0.0] * diverged
    return {"series": series, "ranks": ranks, "seed": seed, "batch": 64 * ranks, "steps": summary_of(folder)["steps"],
            "end": "diverged" if diverged else "completed", "epoch_1": accuracy[0], "best": max(accuracy),
            "final": accuracy[-1], "curve": accuracy}


def write_csv(path, rows):
    columns = ["series", "ranks", "seed", "batch", "steps", "end", "epoch_1", "best", "final"]
    with open(path, "w", newline="") as f:
        out = csv.DictWriter(f, columns, extrasaction="ignore", lineterminator="\n")
        out.writeheader()
        for row in rows:
            out.writerow({k: f"{v:.4f}" if k in ("epoch_1", "best", "final") else v for k, v in row.items()})


def write_table(rows):
    """Median (and range) of the final accuracy, as the document shows it."""
    print("| ranks | " + " | ".join(SERIES[s][0] for s in SERIES) + " |")
    print("|---" * (1 + len(SERIES)) + "|")
    for ranks in RANKS:
        cells = []
        for series in SERIES:
            got = sorted((100 * r["final"], r["end"]) for r in rows if r["series"] == series and r["ranks"] == ranks)
            text = ["diverged" if end == "diverged" else f"{value:.1f}" for value, end in got]
            middle = text[len(text) // 2] if text else ""
            cells.append(middle if len(set(text)) < 2 else f"{middle} ({text[0]} to {text[-1]})")
        print(f"| {ranks} | " + " | ".join(cells) + " |")


class Plot:
    """A line plot as SVG; x and y map values to 0..1."""
    WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 420, 62, 150, 34, 52

    def __init__(self, title, x_label, x_ticks, x):
        self.x, self.names = x, []
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.WIDTH} {self.HEIGHT}" font-family="sans-serif" '
            'font-size="13" fill="#222">', f'<rect width="{self.WIDTH}" height="{self.HEIGHT}" fill="#fff"/>',
            f'<text x="{self.LEFT}" y="20" font-size="15">{title}</text>']
        for tick in range(0, 101, 20):
            y = self.at(x_ticks[0], tick / 100)[1]
            self.parts.append(f'<path d="M{self.LEFT} {y:.1f}H{self.WIDTH - self.RIGHT}" stroke="#ddd"/>'
                              f'<text x="{self.LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick} %</text>')
        for tick in x_ticks:
            px, y = self.at(tick, 0)
            self.parts.append(f'<path d="M{px:.1f} {y:.1f}v5" stroke="#222"/>'
                              f'<text x="{px:.1f}" y="{y + 20:.1f}" text-anchor="middle">{tick}</text>')
        middle = (self.LEFT + self.WIDTH - self.RIGHT) / 2
        self.parts.append(f'<text x="{middle}" y="{self.HEIGHT - 10}" text-anchor="middle">{x_label}</text>')
        self.line([(x_ticks[0], CHANCE), (x_ticks[-1], CHANCE)], "#888", "chance", dashed=True)

    def at(self, x, y):
        wide, high = self.WIDTH - self.LEFT - self.RIGHT, self.HEIGHT - self.TOP - self.BOTTOM
        return self.LEFT + wide * self.x(x), self.TOP + high * (1 - y)

    def line(self, values, colour, name="", dashed=False, marks=False):
        at = [self.at(x, y) for x, y in values]
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2"{dash} points="' +
                          " ".join(f"{x:.1f},{y:.1f}" for x, y in at) + '"/>')
        if marks:
            self.parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>' for x, y in at]
        if name:
            self.names.append((at[-1][1], name, colour))

    def bar(self, x, low, high, colour):
        (px, a), (_, b) = self.at(x, low), self.at(x, high)
        self.parts.append(f'<path d="M{px:.1f} {a:.1f}V{b:.1f}" stroke="{colour}" stroke-width="6" opacity="0.3"/>')

    def write(self, path):
        below = 0
        for y, name, colour in sorted(self.names):  # beside the ends of their lines, but not over one another
            below = max(y + 4, below + 16)
            self.parts.append(f'<text x="{self.WIDTH - self.RIGHT + 12}" y="{below:.1f}" fill="{colour}">{name}</text>')
        with open(path, "w") as f:
            f.write("\n".join(self.parts + ["</svg>"]) + "\n")


def plot_ranks(path, rows):
    step = 1 / (len(RANKS) - 1)
    plot = Plot("Test accuracy after 32 epochs", "ranks (64 images and learning rate 0.01 each)", RANKS,
                lambda ranks: RANKS.index(ranks) * step)
    for series, (name, colour, _) in SERIES.items():
        line = []
        for ranks in RANKS:
            got = sorted(r["final"] for r in rows if r["series"] == series and r["ranks"] == ranks)
            if got:
                line.append((ranks, statistics.median_high(got)))
                plot.bar(ranks, got[0], got[-1], colour)
        if line:
            plot.line(line, colour, name, marks=True)
    plot.write(path)


def plot_epochs(path, rows, ranks=128):
    epochs = max((len(r["curve"]) for r in rows), default=32)
    plot = Plot(f"Test accuracy by epoch, {ranks} ranks, each seed a line", "epoch", [1, *range(4, epochs + 1, 4)],
                lambda epoch: (epoch - 1) / (epochs - 1))
    for series, (name, colour, _) in SERIES.items():
        chosen = [r["curve"] for r in rows if r["series"] == series and r["ranks"] == ranks]
        for k, curve in enumerate(sorted(chosen, key=len, reverse=True)):
            plot.line(list(enumerate(curve, 1)), colour, name if k == 0 else "")
    plot.write(path)


def report(args, todo):
    rows = [row for row in (read(args.work, p) for p in sorted(todo, key=lambda p: (list(SERIES).index(p[0]), *p[1:])))
            if row]
    os.makedirs(args.out, exist_ok=True)
    name = os.path.join(args.out, f"large-batch-{args.images}")
    write_csv(f"{name}.csv", rows)
    plot_ranks(f"{name}-ranks.svg", rows)
    plot_epochs(f"{name}-epochs.svg", rows)
    write_table(rows)
    print(f"{len(rows)} of {len(todo)} runs are complete; written to {args.out}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--lockstep", default=os.path.join(ROOT, "build", "lockstep"))
    p.add_argument("--work", default=os.path.join(ROOT, "build", "large-batch"))
    p.add_argument("--out", default=os.path.join(ROOT, "docs", "studies"))
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--images", choices=list(IMAGES), default="digits")
    p.add_argument("--data", help="the folder of the images' files")
    p.add_argument("--seeds", default="42,1,2", type=lambda text: [int(x) for x in text.split(",")])
    p.add_argument("--report", action="store_true")
    p.add_argument("points", nargs="*", metavar="SERIES[:RANKS]")
    args = p.parse_args()
    if args.images == "digits" and not args.data:
        p.error("--data: the folder with MNIST's four files is missing; or --images clothes")
    args.work = os.path.join(args.work, args.images)
    os.makedirs(args.work, exist_ok=True)
    failed = 0
    if not args.report:
        prove(args)
        failed = run_all(args, points(args.points, args.seeds))
    report(args, points([], args.seeds))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
