#!/usr/bin/env bash
# accuracy_precision.sh [OPTION...] [LOCKSTEP]: what the small experiments reach in fp32, bf16 and fp16, from the same seeds.
#
#   --only NAME,...   these experiments (mnist-10k, resnet18-small, vit-small and the models of several losses)
#   --seeds A,...     these seeds (1)
#   --threads N       of a run (1)
#   --jobs N          so many runs at a time, a third of them of each precision (3)
#   --data FOLDER     the folder that holds mnist/ (LOCKSTEP_DATA); without it mnist-10k is left out
#   --dir FOLDER      data and results; runs that are there already are not repeated (a temporary folder)
#
# LOCKSTEP is the program (build/lockstep).  Prints the mean over the seeds, and how many updates fp16 left out.  Exit code 1: a run
# failed or was not finite to its end, an accuracy is more than half a point below that of fp32, or another figure is not what the
# experiment states (bench/small_experiments.sh).
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
only=mnist-10k,resnet18-small,vit-small,cosmogan-small,aae-small,cyclegan-small
seeds=1 threads=1 jobs=3 given='' dir='' program=$here/build/lockstep

usage() {
    sed -n 's/^# \{0,1\}//; 2,/^set /{/^set /!p}' "$0"
    exit "$1"
}

while (($# > 0)); do
    case $1 in
        --only) only=$2 && shift 2 ;;
        --seeds) seeds=$2 && shift 2 ;;
        --threads) threads=$2 && shift 2 ;;
        --jobs) jobs=$2 && shift 2 ;;
        --data) given=$(readlink -f "$2") && shift 2 ;;
        --dir) dir=$2 && shift 2 ;;
        -h | --help) usage 0 ;;
        -*) usage 2 >&2 ;;
        *) program=$1 && shift ;;
    esac
done
if [[ -z $dir ]]; then
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' EXIT
fi
mkdir -p "$dir/data"
dir=$(readlink -f "$dir")
if [[ -n $given ]]; then
    ln -sfn "$given/mnist" "$dir/data/mnist"
else
    only=${only/mnist-10k,/}
fi

# Data once, before the precisions would make them at the same time.
for precision in fp32 bf16 fp16; do
    mkdir -p "$dir/$precision"
    ln -sfn "$dir/data" "$dir/$precision/data"
done
"$here/bench/small_experiments.sh" --only "$only" --dir "$dir/fp32" --make-data "$program"
for precision in fp32 bf16 fp16; do
    "$here/bench/small_experiments.sh" --only "$only" --seeds "$seeds" --ways "${threads}t" --jobs $(((jobs + 2) / 3)) \
        --dir "$dir/$precision" --set "precision=$precision" "$program" >"$dir/$precision.txt" || true &
done
wait

python3 - "$dir" "$only" "$seeds" "${threads}t" "$here" <<'PY'
import json, math, re, statistics, sys

folder, names, seeds, way, here = sys.argv[1], sys.argv[2].split(","), sys.argv[3].split(","), sys.argv[4], sys.argv[5]
wrong = []


def stated(name):
    with open(f"{here}/experiments/{name}.yaml") as f:
        return re.search(r"^# Reaches: (\S+) ([<>]=) (\S+)$", f.read(), re.M).groups()


def results(name, metric, precision):
    """The figures of the seeds, and the updates that were left out."""
    got, skipped = [], 0
    for seed in seeds:
        try:
            with open(f"{folder}/{precision}/runs/{name}-{way}-{seed}/summary.json") as f:
                s = json.load(f)
            last = s["metrics"]["last"]
            if s["state"] != "completed" or not all(v is not None and math.isfinite(float(v)) for v in last.values()):
                raise ValueError("not finite to its end")
            got.append(float(last[metric]))
            skipped += s.get("skipped_steps") or 0
        except (OSError, KeyError, TypeError, ValueError) as e:
            wrong.append(f"{name}, {precision}, seed {seed}: {e}")
    return got, skipped


print("| experiment | metric | fp32 | bf16 | fp16 | updates left out in fp16 |\n|---|---|---|---|---|---|")
for name in names:
    metric, relation, figure = stated(name)
    all_of = {p: results(name, metric, p) for p in ("fp32", "bf16", "fp16")}
    text = {p: ", ".join(f"{x:.4g}" for x in got) for p, (got, _) in all_of.items()}
    print(f"| `{name}` | {metric} | {text['fp32']} | {text['bf16']} | {text['fp16']} | {all_of['fp16'][1]} |")
    for p in ("bf16", "fp16"):
        got, wide = all_of[p][0], all_of["fp32"][0]
        if metric == "acc" and got and wide and statistics.mean(got) < statistics.mean(wide) - 0.005:
            wrong.append(f"{name}: {p} is more than half a point below fp32")
        if metric != "acc" and any(x > float(figure) if relation == "<=" else x < float(figure) for x in got):
            wrong.append(f"{name}: {p} misses {metric} {relation} {figure}")
for line in wrong:
    print(line)
sys.exit(1 if wrong else 0)
PY
