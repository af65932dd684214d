#!/usr/bin/env bash
# exposed_hosts.sh [ROUNDS] [STEPS]: what communication costs a step that cannot be faster than its wire and its processor:
# two ranks of one thread, each in a network namespace of its own, behind links of RATE (2500mbit unless set), train
# ResNet-18 at 32 x 32 (45 MB of gradients) with BATCHES ("32 128") images each.  For every batch, medians in ms of
#   wire      the payload that a rank sends in a step, at the rate of the link, without a single header
#   exchange  the same sums with nothing to compute meanwhile: one bucket, one image, no overlap
#   compute   the same step with nothing to exchange: both ranks at once, each by itself, since cores slow one another
#   step      that of both ranks, and what of it is exposed
#   bound     step / max(exchange, compute), and beside it step / max(wire, compute)
#   core      milliseconds of its core that a rank's processes are charged for in a step alone, and in one of both ranks (of a run
#             less those of one of FEW steps, which choose their kernels anew: take several rounds)
# and then, of ALSO ("never fsdp"), ddp whose steps make their own updates (parallel.carry=never), and fsdp with and without gathering ahead.
# Exit code 1 unless the bound is at most LIMIT (1.15) for every batch.
# The two hosts should have a quiet core each.  Needs root, ip and tc.
set -euo pipefail
rounds=${1:-3} steps=${2:-12}
. "$(dirname "$0")/hosts_lib.sh"
few=4 limit=${LIMIT:-1.15} batches=${BATCHES:-32 128} also=" ${ALSO-never fsdp} "

# note NAME SETTING...: one run on both hosts; its figures go to files that begin with NAME
note() {
    local name=$1 exposed step
    shift
    train_both "$@"
    read -r exposed _ step < <(figures)
    echo "$exposed" >>"$work/exposed.$name"
    echo "$step" >>"$work/step.$name"
}

# core NAME COMMAND...: what a step takes of a core, of a run that has just been and one of FEW steps
core() {
    local name=$1 long
    shift
    long=$(core_ms)
    steps=$few "$@"
    awk -v a="$long" -v b="$(core_ms)" -v n="$((steps - few))" 'BEGIN { print (a - b) / n }' >>"$work/core.$name"
}

# alone_on HOST: a run of one rank, as if there were no other
alone_on() {
    timed "$1" taskset -c "$1" "$lockstep" train resnet18-cifar --threads 1 --quiet --run-dir "$work/run${1#0}" data.kind=synthetic \
        data.train_range=0:2048 data.test_range=2048:2112 batch.per_rank="$BATCH" train.steps="$steps" train.checkpoint_every=none \
        train.validate_every=none parallel.clip_norm=0
}

# alone_both: one on each host, at once
alone_both() {
    rm -rf "$work/run" "$work/run1"
    alone_on 1 &
    alone_on 0 || { cat "$work/out.0" >&2; exit 1; }
    wait
}

# alone NAME: the same step without the other rank's gradients
alone() {
    local step
    alone_both
    read -r _ _ step < <(figures)
    echo "$step" >>"$work/step.$1"
}

fsdp="parallel.strategy=fsdp parallel.reshard=always"
for ((round = 1; round <= rounds; round++)); do
    BATCH=1 note exchange parallel.overlap=false parallel.bucket_mb=64
    for BATCH in $batches; do
        export BATCH
        alone "compute.$BATCH"
        core "compute.$BATCH" alone_both
        note "ddp.$BATCH"
        core "ddp.$BATCH" train_both
        [[ $also != *" never "* ]] || note "never.$BATCH" parallel.carry=never
        [[ $also == *" fsdp "* ]] || continue
        # shellcheck disable=SC2086 # settings are words
        note "fsdp0.$BATCH" $fsdp parallel.prefetch=0
        # shellcheck disable=SC2086
        note "fsdp.$BATCH" $fsdp parallel.prefetch=auto
    done
done

# of FILE: the median of its lines
of() { median <"$work/$1"; }
parameters=$("$lockstep" plan resnet18-cifar data.kind=synthetic | sed -n 's/^parameters *\([0-9,]*\) in .*/\1/p' | tr -d ,)
bits=$(echo "$rate" | sed -n 's/^\([0-9]*\)mbit$/\1/p')
wire=$(awk -v p="$parameters" -v r="${bits:-0}" 'BEGIN { print (r > 0 ? 32 * p / (r * 1e3) : 0) }')
echo "links of $rate, $parameters parameters, medians of $rounds rounds"
printf '%-6s %8s %10s %9s %8s %9s %8s %8s %11s %11s\n' images "wire" exchange compute step exposed bound "of wire" "core alone" "core step"
status=0
for b in $batches; do
    awk -v b="$b" -v wire="$wire" -v exchange="$(of exposed.exchange)" -v compute="$(of "step.compute.$b")" \
        -v step="$(of "step.ddp.$b")" -v exposed="$(of "exposed.ddp.$b")" -v limit="$limit" \
        -v alone="$(of "core.compute.$b")" -v core="$(of "core.ddp.$b")" 'BEGIN {
        most = exchange > compute ? exchange : compute
        least = wire > compute ? wire : compute
        printf "%-6d %8.1f %10.1f %9.1f %8.1f %9.1f %8.3f %8.3f %11.1f %11.1f\n", b, wire, exchange, compute, step, exposed, step / most,
            step / least, alone, core
        exit !(step <= limit * most) }' || status=1
done
printf '%-6s %14s %18s %18s %14s\n' images ddp "ddp,carry=never" "fsdp,prefetch=0" fsdp
for b in $batches; do
    cells=("$(of "step.ddp.$b")")
    for name in never fsdp0 fsdp; do
        if [ -e "$work/step.$name.$b" ]; then cells+=("$(of "step.$name.$b")"); else cells+=(-); fi
    done
    printf '%-6s %14s %18s %18s %14s\n' "$b" "${cells[@]}"
done
exit $status
