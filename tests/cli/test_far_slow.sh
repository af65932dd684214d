#!/usr/bin/env bash
# Every trial, the trainer, checkpoints, evaluation, ranks and the reproducible mode on `far`, the device whose memory the
# host cannot see and begins as noise, and whose queues run in an order drawn from a seed: with the bits of the reference
# device, whose kernels it has.
. "$(dirname "$0")/cli_lib.sh"
needs_python
export OMP_NUM_THREADS=1
export LOCKSTEP_FAR_SEED=${LOCKSTEP_FAR_SEED:-$((RANDOM * 32768 + RANDOM + 1))}
echo "LOCKSTEP_FAR_SEED=$LOCKSTEP_FAR_SEED"

# Small ones: reference kernels are slow.
trials() {
    cat <<'LIST'
mnist
mnist-keras
linear
vit-tiny model.depth=1
cosmogan model.size=16 model.width=2
wgan-gp
aae model.points=16 model.sum_over=2
cyclegan model.size=32 model.width=2 model.blocks=0
cyclegan-g model.size=32 model.width=2 model.blocks=0
LIST
}

# train DEVICE ARGUMENT...: into $work/DEVICE; $hash is that of its weights.
train() {
    local device=$1
    shift
    run 0 train --device "$device" --threads 1 --run-dir "$work/$device" "$@"
    hash=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1] + "/summary.json"))["weights_xxh3"])' "$work/$device")
}

# alike TRIAL ARGUMENT...: both devices end with the same weights and write the same metrics.
alike() {
    local near
    rm -rf "$work/ref" "$work/far"
    set -- "$@" data.kind=synthetic data.train_range=0:12 data.test_range=12:14
    train ref "$@" && near=$hash && train far "$@"
    n=$((n + 1))
    [ -n "$near" ] && [ "$near" = "$hash" ] || fail "$*: far has $hash, ref $near"
}

few='train.steps=2 batch.per_rank=2 train.validate_every=none train.checkpoint_every=none reproducible=false'
while read -r trial settings; do
    # shellcheck disable=SC2086 # settings are words
    alike "$trial" $settings $few
done < <(trials)

# Ways of running a step: ranks that share variables and ranks that do not, gradients that are added up, stages, shards.
for trial in mnist 'cosmogan model.size=16 model.width=2' 'aae model.points=16 model.sum_over=2'; do
    # shellcheck disable=SC2086
    {
        alike $trial $few -n 2 parallel.share=always
        for _ in 1 2 3; do # by three seeds: gradients leave in many small buckets, at any time
            alike $trial $few -n 2 parallel.share=never parallel.bucket_mb=0.05
            LOCKSTEP_FAR_SEED=$((LOCKSTEP_FAR_SEED + 1))
        done
        alike $trial $few parallel.accumulate=2
        alike $trial $few -n 2 reproducible=true parallel.shards=4
    }
done

# A run that validates, keeps pictures and checkpoints, and is taken up again.
alike cosmogan model.size=16 model.width=2 batch.per_rank=2 train.steps=4 train.validate_every=2st train.checkpoint_every=2st \
    train.samples=2 train.sample_every=2st
before=$hash
rm -rf "$work/far"
train far cosmogan model.size=16 model.width=2 batch.per_rank=2 train.steps=2 train.validate_every=2st train.checkpoint_every=2st \
    data.kind=synthetic data.train_range=0:12 data.test_range=12:14
run 0 train --resume="$work/far" --device far --threads 1 train.steps=4
hash=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1] + "/summary.json"))["weights_xxh3"])' "$work/far")
n=$((n + 1))
[ "$hash" = "$before" ] || fail "taken up again, far has $hash, not $before"

# Evaluation and answers per sample of a checkpoint.
alike mnist batch.per_rank=2 train.steps=2 train.checkpoint_every=1st
for device in ref far; do
    run 0 eval "$work/far" --device "$device" --threads 1 --json
    python3 -c '
import json, sys
o = json.loads(sys.stdin.readlines()[-1])
print(json.dumps({k: o[k] for k in ("metrics", "samples") if k in o}, sort_keys=True))' <"$work/out" >"$work/eval-$device"
    run 0 infer "$work/far" --device "$device" --threads 1 --out "$work/answers-$device.csv"
done
n=$((n + 2))
[ -s "$work/eval-far" ] && cmp -s "$work/eval-ref" "$work/eval-far" || fail "evaluation: $(cat "$work/eval-ref" "$work/eval-far")"
[ -s "$work/answers-far.csv" ] && cmp -s "$work/answers-ref.csv" "$work/answers-far.csv" || fail "answers differ"
echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
