#!/usr/bin/env bash
# bits.sh PROGRAM[@DEVICE] [OTHER[@DEVICE]]: the weights that every built-in trial ends with, as hashes, in several ways of running it.
#
# For changes that must not change a bit: with two programs it trains with both and exits 1 where they differ.  Kernels are
# fixed (LOCKSTEP_TUNE=off).  Ways: one rank; two ranks three times (the same every time) for every value of parallel.share;
# accumulated gradients; reproducible on 1, 2, 3 and 4 ranks.  Of devices, `bits.sh build/lockstep@ref build/lockstep@far` compares
# the one that forgives nothing with the reference.  TRIALS="mnist linear": only those.  JOBS=16: so many runs at once (1).
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }
export LOCKSTEP_TUNE=off OMP_NUM_THREADS=1
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT

trials() {
    cat <<'LIST'
mnist
mnist-keras
linear
resnet18-cifar large
vit-tiny
cosmogan model.size=32 model.width=4
wgan-gp
aae model.points=32 model.sum_over=8
cyclegan large model.size=32 model.blocks=0
cyclegan-g model.size=32 model.blocks=1
LIST
}

# hash PROGRAM TRIAL WAY RANKS SETTING...: "TRIAL WAY HASH".
hash() {
    local program=$1 trial=$2 way=$3 ranks=$4 device=() run
    shift 4
    case "$program" in *@*) device=(--device "${program##*@}") ;; esac
    run=$(mktemp -d "$runs/XXXXXX")
    if "${program%@*}" train "$trial" -n "$ranks" "${device[@]}" --threads 1 --run-dir "$run/run" data.kind=synthetic \
        data.train_range=0:64 data.test_range=64:66 train.validate_every=none train.checkpoint_every=none "$@" >"$run/log" 2>&1; then
        echo "$trial $way $(sed -n 's/.*"weights_xxh3": *"\([0-9a-f]*\)".*/\1/p' "$run/run/summary.json")"
    else
        echo "$trial $way failed"
    fi
    rm -rf "$run"
}

# ways PROGRAM TRIAL STEPS BATCH SETTING...: the arguments of `hash`, one way a line.
ways() {
    local program=$1 trial=$2 steps=$3 batch=$4
    shift 4
    local all="$* train.steps=$steps"
    echo "$program $trial one 1 $all batch.per_rank=$batch reproducible=false"
    for share in auto always never; do
        for again in 1 2 3; do
            echo "$program $trial two,share=$share,$again 2 $all batch.per_rank=2 reproducible=false" \
                "parallel.share=$share parallel.bucket_mb=0.05"
        done
    done
    echo "$program $trial accumulated 1 $all batch.per_rank=2 parallel.accumulate=2 reproducible=false"
    for ranks in 1 2 3 4; do
        echo "$program $trial reproducible,$ranks $ranks $all batch.global=$batch parallel.shards=4 reproducible=true"
    done
}

of_program() {
    while read -r trial rest; do
        case " ${TRIALS:-$trial} " in *" $trial "*) ;; *) continue ;; esac
        steps=6 batch=8
        case "$rest" in large*) steps=1 batch=4 rest=${rest#large} ;; esac
        # shellcheck disable=SC2086 # settings are words
        ways "$1" "$trial" $steps $batch $rest
    done < <(trials) | run_all
}

# The hashes of the lines of `ways`, JOBS at once, sorted: jobs end in any order.
run_all() {
    export -f hash
    export runs
    # shellcheck disable=SC2016 # $0 and $@ are of the shell that xargs begins
    xargs -P "${JOBS:-1}" -L 1 bash -c 'hash "$0" "$@"' | sort
}

of_program "$1" >"$runs/first"
cat "$runs/first"
[ $# -ge 2 ] || exit 0
of_program "$2" >"$runs/second"
if grep -h ' failed$' "$runs/first" "$runs/second"; then exit 1; fi
diff "$runs/first" "$runs/second" && echo "equal: $(wc -l <"$runs/first") runs"
