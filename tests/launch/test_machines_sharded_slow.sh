#!/usr/bin/env bash
# The published sharded experiment, small, on two machines of two ranks: it trains with clipping on, to the numbers of one process,
# and all ranks of both machines test what they trained.  Machines that have a model each, in pieces, notice when these part.
set -uo pipefail
. "$(dirname "$0")/machines_lib.sh"
make_machines 2

small=(vit-fsdp model.trial=vit-tiny data.kind=synthetic data.resize=0 data.train_range=0:128 data.test_range=128:169 train.steps=6 precision=fp32)

# train_on_both SETTING...: on machines 0 and 1, two ranks each.
train_on_both() {
    local i
    rm -rf "$work/run"
    for i in 1 0; do
        on $i env MASTER_ADDR="$net.1" MASTER_PORT=$port NODE_RANK=$i "$LOCKSTEP" train "${small[@]}" batch.per_rank=4 "$@" -n 2 --nodes 2 \
            --run-dir "$work/run" &
    done
    wait
    code 0 0
    code 1 0
}
train_on_one() {
    rm -rf "$work/one"
    "$LOCKSTEP" train "${small[@]}" batch.per_rank=16 parallel.strategy=ddp "$@" --run-dir "$work/one" >"$work/out.one" 2>&1 || fail "$(cat "$work/out.one")"
}
# field NAME I: of what `eval --json` printed on machine I
field() {
    sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p" "$work/out.$2"
}
close() {
    awk -v a="$1" -v b="$2" -v limit="$3" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < limit ^ 2 * b * b) }'
}
tests_on_both() {
    local i
    for i in 1 0; do
        on $i env MASTER_ADDR="$net.1" MASTER_PORT=$port NODE_RANK=$i "$LOCKSTEP" eval "$work/run" --nodes 2 -n 2 --json &
    done
    wait
    code 0 0
    code 1 0
    n=$((n + 1))
    [ "$(field samples 0)" = 41 ] || fail "tested $(field samples 0) samples, not 41: $(cat "$work/out.0")"
}

# --- to the bit in reproducible mode ----------------------------------------------------------------
for strategy in fsdp zero1 "hybrid parallel.shard_group=2"; do
    # shellcheck disable=SC2086 # two settings
    train_on_both reproducible=true parallel.shards=4 parallel.strategy=$strategy
    train_on_one reproducible=true parallel.shards=4
    n=$((n + 1))
    [ -n "$(grep '^weights' "$work/out.one")" ] && [ "$(grep '^weights' "$work/out.0")" = "$(grep '^weights' "$work/out.one")" ] ||
        fail "$strategy: $(grep '^weights' "$work/out.0"), one process: $(grep '^weights' "$work/out.one")"
done

# --- to rounding as it is run -------------------------------------------------------------------------
train_on_both
n=$((n + 1))
grep -q 'clip_norm: 0.5' "$work/run/config.yaml" && grep -q 'strategy: fsdp' "$work/run/config.yaml" ||
    fail "no clipping, or no fsdp: $(grep -A9 '^parallel' "$work/run/config.yaml")"
tests_on_both
train_on_one
"$LOCKSTEP" eval "$work/one" --json >"$work/out.one" 2>&1
n=$((n + 1))
close "$(field loss 0)" "$(field loss one)" 1e-3 || fail "loss $(field loss 0), of one process $(field loss one)"

# --- pieces that both machines have are compared ------------------------------------------------------
train_on_both parallel.strategy=hybrid parallel.verify_every=1st
if grep -qw avx2 /proc/cpuinfo; then # else the processor has no other instructions to compute other bits with
    for i in 1 0; do
        on $i env MASTER_ADDR="$net.1" MASTER_PORT=$port NODE_RANK=$i LOCKSTEP_CPU_ISA="$([ $i = 1 ] && echo none)" "$LOCKSTEP" train linear \
            data.kind=synthetic data.train_range=0:200 data.test_range=200:240 batch.per_rank=4 train.steps=12 optimizer.name=adam \
            parallel.strategy=hybrid parallel.verify_every=5st --device cpu -n 2 --nodes 2 --run-dir "$work/parted" &
    done
    wait
    code 0 5
    code 1 5
    says 0 'comparing weights: other weights on ranks 0, 1 than on ranks 2, 3; too few agree to say whose are wrong (first in "'
fi
nobody_left
finish
