#!/usr/bin/env bash
# How weights in pieces are gathered, where settings leave it open: chosen once, by rank 0, with the reason in summary.json;
# what settings say is done.  The wire and the processor of a test are anybody's: what is chosen ahead is not compared.
set -euo pipefail
lockstep=${LOCKSTEP:?the program}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export LOCKSTEP_TUNE=off

# gathers SETTING...: "AHEAD AGAIN WHY" of a run
gathers() {
    rm -rf "$folder/run"
    "$lockstep" train vit-tiny -n 2 --threads 1 --quiet --run-dir "$folder/run" data.kind=synthetic data.train_range=0:16 \
        data.test_range=16:20 batch.per_rank=2 train.steps=1 train.checkpoint_every=none train.validate_every=none \
        parallel.strategy=fsdp parallel.bucket_mb=0.02 "$@" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
    tr -d '\n' <"$folder/run/summary.json" |
        sed -n 's/.*"gathers": *{ *"ahead": *\([0-9]*\), *"again": *"\([a-z]*\)", *"why": *"\([^"]*\)".*/\1 \2 \3/p'
}

# expect WHAT TEXT PATTERN
expect() {
    # shellcheck disable=SC2053 # the pattern is one
    [[ $2 == $3 ]] || { echo "$1: \"$2\", expected $3"; exit 1; }
    echo "$1: $2"
}

expect "auto" "$(gathers)" "[0-4] most [0-4] units ahead leave *"
expect "as set" "$(gathers parallel.prefetch=2 parallel.reshard=always)" "2 all "
roomy=$(gathers parallel.prefetch=1 memory.limit=1GiB)
expect "all fit" "$roomy" "1 none kept for gradients a rank would take * and memory.limit is 1.00 GiB"
# What a rank would take with so many units ahead, in KiB, by the refusal of a limit that nothing fits.
takes() {
    { "$lockstep" train vit-tiny -n 2 --threads 1 --quiet --run-dir "$folder/no" data.kind=synthetic data.train_range=0:16 \
        data.test_range=16:20 batch.per_rank=2 train.steps=1 train.checkpoint_every=none train.validate_every=none \
        parallel.strategy=fsdp parallel.bucket_mb=0.02 parallel.reshard=always parallel.prefetch="$1" memory.limit=1KiB 2>&1 || true; } |
        sed -n 's/.*a rank would take \([0-9.]*\) MiB.*/\1/p' | awk '{ print 1024 * $1; exit }'
}

none=$(takes 0) one=$(takes 1)
between=$(awk -v a="$none" -v b="$one" 'BEGIN { if (b - a < 16) exit 1; printf "%.0f", (a + b) / 2 }')
expect "only none ahead fits" "$(gathers parallel.reshard=always memory.limit="${between}KiB")" "0 all 0 units ahead*"
# To compute something again costs more than to wait for a gather.
expect "none ahead for recomputation" "$(gathers parallel.reshard=always train.recompute=auto memory.limit="${between}KiB")" "0 all 0 units ahead*"
kept=$(sed 's/.*would take \([0-9.]*\) MiB.*/\1/' <<<"$roomy")
less=$(awk -v k="$kept" 'BEGIN { printf "%.0f", 1024 * k - 24 }')
expect "not all fit" "$(gathers parallel.prefetch=1 memory.limit="${less}KiB")" "1 most kept for gradients a rank would take *"
