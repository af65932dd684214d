#!/usr/bin/env bash
# studies.sh: measures what the documents in docs/studies/ show, and writes their tables.  Needs bash and awk.
#
#   bench/studies.sh [--lockstep BIN] [--out DIR] [--ranks LIST] [--seconds S] [--repeats R] [STUDY...]
#   bench/studies.sh --into DOCS --as PLACE [--out DIR]      copies tables and charts of DIR into the documents
#
# STUDY: cosmogan aae cyclegan resnet18 mnist (weak scaling), mnist-time (32 epochs), aggregation (CycleGAN), epochs (DDP),
# aae-3375 and vit (at full size, few steps); all of them unless some are named.  LIST: 1,2,4,... up to the cores unless given.
# S: seconds of timed steps of a point, at least 5 steps (2).  R: how often weak scaling is measured (1 to 3 times).
#
# Every point is a file or a run directory in DIR (build/studies): a second call measures only what is missing.  Remove DIR
# to measure again.  How busy others kept the processors at the beginning stands beside the tables: what they do on
# the machine spoils them.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
lockstep=$root/build/lockstep out=$root/build/studies ranks= seconds=2 repeats= into= place=
all="cosmogan aae cyclegan resnet18 mnist mnist-time aggregation epochs aae-3375 vit"

fail() {
    echo "studies.sh: $*" >&2
    exit 2
}
say() { echo "$(date +%T) $*" >&2; }

studies=
while (($# > 0)); do
    case $1 in
    --lockstep | --out | --ranks | --seconds | --repeats | --into | --as)
        (($# > 1)) || fail "$1 needs a value"
        case $1 in
        --lockstep) lockstep=$2 ;;
        --out) out=$2 ;;
        --ranks) ranks=$2 ;;
        --seconds) seconds=$2 ;;
        --repeats) repeats=$2 ;;
        --into) into=$2 ;;
        --as) place=$2 ;;
        esac
        shift
        ;;
    -h | --help)
        sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
        exit 0
        ;;
    *)
        [[ " $all " == *" $1 "* ]] || fail "no study \"$1\"; there are: $all"
        studies+=" $1"
        ;;
    esac
    shift
done
studies=${studies:-$all}
if [[ -z $ranks ]]; then
    for ((n = 1; n <= $(nproc); n *= 2)); do ranks+=${ranks:+,}$n; done
fi
[[ $ranks =~ ^[0-9]+(,[0-9]+)*$ ]] || fail "--ranks $ranks: numbers with commas between them, such as 1,2,4"
# shellcheck source=bench/studies_tables.sh
source "$root/bench/studies_tables.sh"

if [[ -n $into ]]; then
    [[ -n $place ]] || fail "--into needs --as PLACE, the name that tables and charts of this machine have in the documents"
    install_tables "$into" "$place"
    exit 0
fi

[[ -x $lockstep ]] || fail "$lockstep is no program; build it, or name it with --lockstep"
mkdir -p "$out/tables"
export LOCKSTEP_EXPERIMENTS=$root/experiments
export LOCKSTEP_CACHE=$out/cache # kernels are chosen on the machine as it is now
counts=${ranks//,/ }
most=${ranks##*,}
quiet_run="train.checkpoint_every=none train.report_every=none train.on_nonfinite=warn"

# point FILE ARGS...: a result of `lockstep bench` in FILE, unless it is there.
point() {
    local file=$1
    shift
    [[ -s $file ]] && return
    say "bench $*"
    mkdir -p "$(dirname "$file")"
    "$lockstep" bench "$@" --threads 1 --json >"$file.part"
    tail -n 1 "$file.part" >"$file.new"
    mv "$file.new" "$file"
    rm "$file.part"
}

# trained DIR ARGS...: a run that is completed in DIR, unless it is there.
trained() {
    local dir=$1
    shift
    grep -qs '"state": "completed"' "$dir/summary.json" && return
    say "train $*"
    rm -rf "$dir"
    mkdir -p "$(dirname "$dir")"
    # shellcheck disable=SC2086
    "$lockstep" train "$@" $quiet_run --threads 1 --quiet --run-dir "$dir" >/dev/null
    rm -rf "$dir/checkpoints"
}

# made KIND NAME ARGS...: a set of samples in a published format and of the published size, with made-up content.
made() {
    local kind=$1 dir=$out/data/$2
    shift 2
    [[ -d $dir ]] && return
    mkdir -p "$out/data"
    rm -rf "$dir.new"
    "$lockstep" data make "kind=$kind" "path=$dir.new" "$@" >/dev/null
    mv "$dir.new" "$dir"
}

# scaled NAME ARGS...: a study in the folder NAME; what `lockstep scale` says of it at the end is in NAME/scale.json.
scaled() {
    local dir=$out/$1
    shift
    "$lockstep" scale "$@" --mode weak --threads 1 --dir "$dir" --json |
        awk -v last="$dir/scale.json.new" '/"event": ?"point"/ { print > "/dev/stderr" } { line = $0 } END { print line > last }'
    mv "$dir/scale.json.new" "$dir/scale.json"
}

# weak NAME REPEATS EXPERIMENT SETTINGS...: weak scaling, and beside it as many ranks as its largest has, without an exchange.
weak() {
    local name=$1 times=${repeats:-$2}
    shift 2
    scaled "$name" "$@" --ranks "$ranks" --repeats "$times" --seconds "$seconds"
    apart "$name" "$@"
}

# usable_cores: their numbers, a line each.
usable_cores() {
    awk '/^Cpus_allowed_list/ { n = split($2, part, ","); for (i = 1; i <= n; i++) { m = split(part[i], e, "-"); for (c = e[1]; c <= e[m]; c++) print c } }' \
        /proc/self/status
}

# apart NAME ARGS...: single ranks at once, each on a core of its own, that exchange nothing: what the cores themselves allow.
apart() {
    local dir=$out/$1/apart r cores pids=()
    shift
    mapfile -t cores < <(usable_cores)
    command -v taskset >/dev/null || return 0
    ((most > 1 && most <= ${#cores[@]})) || return 0
    [[ -s $dir/$((most - 1)).json ]] && return
    say "$most single ranks at once"
    mkdir -p "$dir"
    for ((r = 0; r < most; r++)); do
        taskset -c "${cores[r]}" "$lockstep" bench "$@" -n 1 --threads 1 --seconds "$seconds" --json >"$dir/$r.part" &
        pids+=($!)
    done
    for r in "${pids[@]}"; do wait "$r"; done
    for ((r = 0; r < most; r++)); do
        tail -n 1 "$dir/$r.part" >"$dir/$r.json"
        rm "$dir/$r.part"
    done
}

# The published run has 32 epochs.  The three largest rank counts run them.
mnist_time() {
    local three
    made idx mnist train=60000 test=10000
    three=$(tr , '\n' <<<"$ranks" | tail -n 3 | paste -sd , -)
    # shellcheck disable=SC2086
    LOCKSTEP_DATA=$out/data scaled mnist-time mnist-theta $quiet_run --ranks "$three" --repeats 1 --train
}

# CycleGAN at 32 x 32: as many gradients as at 256 x 256 with 1/64 of the work, so that the exchange weighs.  On one rank there
# is nothing to exchange, and only the batch matters.
aggregation() {
    local small="cyclegan-1 model.size=32 batch.global=null --seconds $seconds" n k
    # shellcheck disable=SC2086
    for k in 1 2 4; do
        for n in $(printf '%s\n' 1 "$most" | sort -un); do
            point "$out/aggregation/ranks-$n-batch-$k-times-1.json" $small -n "$n" batch.per_rank=$k
        done
        point "$out/aggregation/ranks-$most-batch-1-times-$k.json" $small -n "$most" batch.per_rank=1 parallel.accumulate=$k
    done
}

# Epochs of MNIST (6; the last 5 count) on all rank counts, of CIFAR-10 with ResNet-18 (1) on the two largest.
epochs() {
    local n
    made idx mnist train=60000 test=10000
    made cifar cifar-10-batches-bin train=50000 test=10000
    for n in $counts; do
        LOCKSTEP_DATA=$out/data trained "$out/epochs/mnist-$n" mnist-theta train.epochs=6 -n "$n"
    done
    for n in $(tail -n 2 <(tr ' ' '\n' <<<"$counts")); do
        LOCKSTEP_DATA=$out/data trained "$out/epochs/resnet18-$n" resnet18-cifar train.epochs=1 -n "$n"
    done
}

# measure STUDY: it all, from what is missing to the table.
measure() {
    local study=$1 begun=$SECONDS n
    case $study in
    cosmogan) weak cosmogan 1 cosmogan-bench batch.per_rank=2 ;;
    aae) weak aae 2 aae-longhorn model.points=512 ;;
    cyclegan) weak cyclegan 1 cyclegan-1 model.size=64 batch.global=null batch.per_rank=1 ;;
    resnet18) weak resnet18 2 resnet18-cifar ;;
    mnist) weak mnist 3 mnist-theta ;;
    mnist-time) mnist_time ;;
    aggregation) aggregation ;;
    epochs) epochs ;;
    aae-3375)
        for n in $(printf '%s\n' 1 "$most" | sort -un); do
            point "$out/aae-3375/ranks-$n.json" aae-longhorn -n "$n" --steps 3
        done
        ;;
    vit) point "$out/vit/ranks-$most.json" vit-ddp batch.per_rank=1 -n "$most" --steps 3 ;;
    esac
    # A study that was there already keeps what was noted when it was measured.
    if ((SECONDS - begun > 1)) || [[ ! -s $out/$study/where.txt ]]; then
        note_where "$busy" "--ranks $ranks --seconds $seconds${repeats:+ --repeats $repeats} $study" >"$out/$study/where.txt"
    fi
    write_table "$study"
    say "$study: $((SECONDS - begun)) s"
}

# One study is measured here.  Several are a call each, so that one that fails does not take the others with it.
busy=${STUDIES_BUSY:-$(busy_percent)} # with others: later it is our own
failed=
read -r -a wanted <<<"$studies"
if ((${#wanted[@]} == 1)); then
    measure "${wanted[0]}"
else
    for study in "${wanted[@]}"; do
        STUDIES_BUSY=$busy "$0" --lockstep "$lockstep" --out "$out" --ranks "$ranks" --seconds "$seconds" ${repeats:+--repeats "$repeats"} "$study" >/dev/null ||
            failed+=" $study"
    done
fi
for study in "${wanted[@]}"; do
    [[ -s $out/tables/$study.md ]] || continue
    printf '\n## %s\n\n' "$study"
    cat "$out/tables/$study.md"
done
if [[ -n $failed ]]; then
    echo "studies.sh: failed:$failed; the same command goes on where they ended" >&2
    exit 1
fi
