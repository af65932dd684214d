#!/usr/bin/env bash
# small_experiments.sh [OPTION...] [LOCKSTEP]: whether every small experiment reaches what it states, whatever the seed, the
# number of threads and the number of ranks.  Stated is what its file says in one line of its comment:
#     # Reaches: acc >= 0.95
# (a metric of the last validation, as in metrics.last of summary.json); its data are made by the file's own "lockstep data make".
#
#   --only NAME,...   these experiments, also others that state something (all experiments/*-small.yaml)
#   --seeds A,...     these seeds (1,2,3,4,5)
#   --ways WAY,...    of 1t, 2t (one rank with 1 or 2 threads), 2r, 4r (ranks of 1 thread each) (1t,2t,2r)
#   --jobs N          so many runs at a time (1); a run of 2t or 2r keeps two cores busy
#   --data FOLDER     the data that cannot be made: LOCKSTEP_DATA of mnist-10k and the like
#   --dir FOLDER      data and results; runs that are there already are not repeated (a temporary folder)
#   --set KEY=VALUE   a setting for all of them, to try one out; may be repeated
#   --make-data       makes the data and ends
#
# LOCKSTEP is the program (build/lockstep).  Prints a table of the worst, the median and the best figure of each way; exit
# code 1 when a run failed or missed the figure, and the table names its seed.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
only='' given='' only_data='' seeds=1,2,3,4,5 ways=1t,2t,2r jobs=1 dir='' program=$here/build/lockstep
settings=()

usage() {
    sed -n 's/^# \{0,1\}//; 2,/^set /{/^set /!p}' "$0"
    exit "$1"
}

while (($# > 0)); do
    case $1 in
        --only) only=$2 && shift 2 ;;
        --seeds) seeds=$2 && shift 2 ;;
        --ways) ways=$2 && shift 2 ;;
        --jobs) jobs=$2 && shift 2 ;;
        --data) given=$(readlink -f "$2") && shift 2 ;;
        --dir) dir=$2 && shift 2 ;;
        --set) settings+=("$2") && shift 2 ;;
        --make-data) only_data=1 && shift ;;
        -h | --help) usage 0 ;;
        -*) usage 2 >&2 ;;
        *) program=$1 && shift ;;
    esac
done
[[ -x $program ]] || { echo "$program: no such program; build it, or name it" >&2 && exit 2; }
program=$(readlink -f "$program")
if [[ -z $dir ]]; then
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' EXIT
fi
mkdir -p "$dir/data" "$dir/runs"
dir=$(readlink -f "$dir")
export LOCKSTEP_DATA=${given:-$dir/data}

# "metric relation figure" of an experiment, or nothing.
stated() { sed -n 's/^# Reaches: \([^ ]*\) \([<>]=\) \([0-9.e+-]*\)$/\1 \2 \3/p' "$here/experiments/$1.yaml"; }

make_data() {
    local words word
    read -ra words <<<"$(sed -n 's/^#   lockstep data make //p' "$here/experiments/$1.yaml" | head -n 1)"
    ((${#words[@]} > 0)) || return 0
    for word in "${words[@]}"; do
        [[ $word != path=data/* || ! -e $dir/data/${word#path=data/} ]] || return 0
    done
    "$program" data make "${words[@]/#path=data\//path=$dir/data/}" >/dev/null
}

# run NAME WAY SEED: one run, left in $dir/runs; says when it failed.
run() {
    local name=$1 way=$2 seed=$3 to=$dir/runs/$1-$2-$3 how
    case $way in
        *t) how=(--threads "${way%t}") ;;
        *r) how=(-n "${way%r}" --threads 1) ;;
    esac
    [[ ! -e $to/done ]] || return 0
    rm -rf "$to"
    if (cd "$here" && "$program" train "$name" "${how[@]}" --run-dir "$to" --quiet "seed=$seed" \
        train.checkpoint_every=none train.sample_every=none "${@:4}" >"$to.log" 2>&1); then
        touch "$to/done"
    else
        echo "$name, $way, seed $seed: failed: $(tail -n 1 "$to.log")" >&2
    fi
}

names=()
[[ -n $only ]] || only=$(cd "$here/experiments" && printf '%s,' *-small.yaml)
for name in ${only//,/ }; do
    file=$here/experiments/${name%.yaml}.yaml name=${name%.yaml}
    [[ -e $file ]] || { echo "no experiment is called $name" >&2 && exit 2; }
    [[ -n $(stated "$name") ]] || { echo "$file states nothing (# Reaches: metric >= figure)" >&2 && exit 2; }
    names+=("$name")
    make_data "$name"
done
[[ -z $only_data ]] || exit 0

export -f run
export program dir here
for seed in ${seeds//,/ }; do
    for name in "${names[@]}"; do
        for way in ${ways//,/ }; do echo "$name $way $seed"; done
    done
done | xargs -P "$jobs" -L 1 bash -c 'run "${@: -3}" "${@:1:$#-3}"' run "${settings[@]}"

for name in "${names[@]}"; do
    for way in ${ways//,/ }; do echo "$name $way $(stated "$name")"; done
done >"$dir/wanted"
python3 - "$dir" "$seeds" <<'EOF'
import json, statistics, sys

folder, seeds = sys.argv[1], sys.argv[2].split(",")
missed = 0
print("| experiment | states | ranks and threads | worst | median | best | |")
print("|---|---|---|---|---|---|---|")
for line in open(folder + "/wanted"):
    name, way, metric, relation, figure = line.split()
    got, bad = [], []
    for seed in seeds:
        try:
            with open(f"{folder}/runs/{name}-{way}-{seed}/summary.json") as f:
                value = float(json.load(f)["metrics"]["last"][metric])
        except (OSError, KeyError, TypeError, ValueError):
            bad.append(f"seed {seed}: no figure")
            continue
        got.append(value)
        if not (value >= float(figure) if relation == ">=" else value <= float(figure)):
            bad.append(f"seed {seed}: {value:.4g}")
    got.sort(reverse=relation == "<=")
    row = [f"{x:.4g}" for x in (got[0], statistics.median(got), got[-1])] if got else ["", "", ""]
    how = f"{way[:-1]} " + {"t": "thread", "r": "rank"}[way[-1]] + ("s" if way[:-1] != "1" else "")
    print(f"| `{name}` | {metric} {relation} {figure} | {how} | {' | '.join(row)} | {'missed: ' + ', '.join(bad) if bad else 'reached'} |")
    missed += len(bad)
sys.exit(1 if missed else 0)
EOF
