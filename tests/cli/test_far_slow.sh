#!/usr/bin/env bash
# Every trial, the trainer, checkpoints, evaluation, ranks and the reproducible mode on `far`, the device whose memory the
# host cannot see and begins as noise, and whose queues run late, on a thread of their own and in an order drawn from a seed:
# with the bits and the metrics of the reference device, whose kernels it has.
. "$(dirname "$0")/cli_lib.sh"
needs_python
export OMP_NUM_THREADS=1
export LOCKSTEP_FAR_SEED=${LOCKSTEP_FAR_SEED:-$((RANDOM * 32768 + RANDOM + 1))}
echo "LOCKSTEP_FAR_SEED=$LOCKSTEP_FAR_SEED"

# Small ones: reference kernels are slow.
trials() {
    cat <<'LIST'
mnist
mnist-keras batch.per_rank=1 train.steps=2
linear
resnet18-cifar batch.per_rank=1 train.steps=1
vit-tiny model.depth=1
cosmogan model.size=16 model.width=2
wgan-gp
aae model.points=16 model.sum_over=2
cyclegan model.size=32 model.width=2 model.blocks=0
cyclegan-g model.size=32 model.width=2 model.blocks=0
LIST
}

# hash_of DEVICE: of the weights that the run there ended with.
hash_of() {
    sed -n 's/.*"weights_xxh3": *"\([0-9a-f]*\)".*/\1/p' "$work/$1/summary.json"
}

# train DEVICE ARGUMENT...: into $work/DEVICE; $hash is that of its weights.
train() {
    local device=$1
    shift
    run 0 train --device "$device" --threads 1 --run-dir "$work/$device" "$@"
    hash=$(hash_of "$device")
}

# metrics DEVICE: what the run has written, but for times.
metrics() {
    python3 -c '
import json, sys
for line in open(sys.argv[1] + "/metrics.jsonl"):
    print(json.dumps({k: v for k, v in json.loads(line).items() if not k.endswith("_s")}, sort_keys=True))' "$work/$1"
}

# alike TRIAL ARGUMENT...: both devices end with the same weights and write the same metrics in the same order, by every
# one of $seeds.
seeds=1
alike() {
    local near near_metrics far_metrics last=$LOCKSTEP_FAR_SEED
    rm -rf "$work/ref"
    set -- "$@" data.kind=synthetic data.train_range=0:12 data.test_range=12:13 train.report_every=1st
    train ref "$@" && near=$hash
    near_metrics=$(metrics ref)
    for _ in $(seq "$seeds"); do
        rm -rf "$work/far"
        train far "$@"
        n=$((n + 2))
        [ -n "$near" ] && [ "$near" = "$hash" ] || fail "$*: far has $hash, ref $near (LOCKSTEP_FAR_SEED=$LOCKSTEP_FAR_SEED)"
        far_metrics=$(metrics far)
        [ -n "$near_metrics" ] && [ "$near_metrics" = "$far_metrics" ] ||
            fail "$*: other metrics (LOCKSTEP_FAR_SEED=$LOCKSTEP_FAR_SEED): $near_metrics $far_metrics"
        LOCKSTEP_FAR_SEED=$((LOCKSTEP_FAR_SEED + 1))
    done
    LOCKSTEP_FAR_SEED=$((last + 1))
}

few='train.steps=3 batch.per_rank=2 train.validate_every=none train.checkpoint_every=none reproducible=false'
while read -r trial settings; do
    # shellcheck disable=SC2086 # settings are words
    {
        alike "$trial" $few $settings
        # Those whose gradients leave in another way than others': several losses, a gradient of a gradient, a linear layer alone.
        case $trial in linear | cosmogan | wgan-gp | cyclegan) alike "$trial" $few $settings -n 2 parallel.bucket_mb=0.05 ;; esac
    }
done < <(trials)

# Ways of running a step: ranks that share variables and ranks that do not, gradients that are added up, stages, shards.
for trial in mnist 'aae model.points=16 model.sum_over=2'; do
    few=${few/steps=?/steps=$([ "$trial" = mnist ] && echo 3 || echo 2)} # reference kernels are slow
    # shellcheck disable=SC2086
    {
        alike $trial $few -n 2 parallel.share=always
        seeds=2 # gradients leave in many small buckets, at any time
        alike $trial $few -n 2 parallel.share=never parallel.bucket_mb=0.05
        seeds=1
        alike $trial $few parallel.accumulate=2
        alike $trial $few reproducible=true parallel.shards=2
        alike $trial $few -n 2 reproducible=true parallel.shards=4
    }
done
few=${few/steps=?/steps=3}
# shellcheck disable=SC2086
{
    alike mnist $few -n 3 batch.per_rank=1 parallel.bucket_mb=0.05
    alike mnist $few -n 2 parallel.sync_batchnorm=true parallel.clip_norm=1
    alike mnist $few -n 2 parallel.overlap=false train.trace=2
    alike vit-tiny $few model.depth=1 -n 2 precision=bf16 parallel.clip_norm=1
    alike aae $few model.points=16 model.sum_over=2 precision=bf16
}

# Steps of several batch sizes, epochs that end, and numbers that are not finite: seen at the latest a step later.
seeds=2
alike mnist batch.per_rank=5 train.epochs=3 train.validate_every=4st train.checkpoint_every=3st reproducible=false
seeds=1
# diverge SAMPLES ARGUMENT...: of both devices, the step that is said, the steps that are counted, and the metrics.
diverge() {
    local samples=$1 device
    shift
    for device in ref far; do
        rm -rf "${work:?}/$device"
        run 1 train mnist "$@" --device "$device" --threads 1 --run-dir "$work/$device" data.kind=synthetic \
            data.train_range="0:$samples" data.test_range=64:66 train.steps=20 batch.per_rank=2 reproducible=false \
            optimizer.lr=1e6 train.report_every=1st train.validate_every=none train.checkpoint_every=none
        python3 -c '
import json, sys
o = json.load(open(sys.argv[1] + "/summary.json"))
print(o["steps"], o["state"], o["error"])' "$work/$device" >"$work/why-$device"
    done
    n=$((n + 2))
    grep -q '^[0-9]* failed step [0-9]*: loss is' "$work/why-ref" && cmp -s "$work/why-ref" "$work/why-far" ||
        fail "divergence $*: $(cat "$work/why-ref" "$work/why-far")"
    [ "$(metrics ref)" = "$(metrics far)" ] || fail "divergence $*: other metrics: $(metrics ref) $(metrics far)"
}
diverge 64
# Three full steps and a batch that is as large as before on one of the ranks: none may end while another goes on.
diverge 22 -n 3

# A run that validates, keeps pictures and checkpoints, and is taken up again.
alike cosmogan model.size=16 model.width=2 batch.per_rank=2 train.steps=4 train.validate_every=2st train.checkpoint_every=2st \
    train.samples=2 train.sample_every=2st
before=$hash
rm -rf "$work/far"
train far cosmogan model.size=16 model.width=2 batch.per_rank=2 train.steps=2 train.validate_every=2st train.checkpoint_every=2st \
    data.kind=synthetic data.train_range=0:12 data.test_range=12:13
run 0 train --resume="$work/far" --device far --threads 1 train.steps=4
hash=$(hash_of far)
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
