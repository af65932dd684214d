#!/usr/bin/env bash
# Every trial on a GPU: three steps (the second is recorded, the third replayed) end with the weights of the reference device, up to
# rounding; so do two ranks that share the GPU, steps whose kernels are started one by one, and plain layouts; a run goes on
# on another device.  Skipped without a GPU.
. "$(dirname "$0")/cli_lib.sh"
needs_python
run 0 info
if ! grep -q '^backend cuda' "$work/out" || grep -q '^backend cuda  *not usable' "$work/out"; then
    echo "skipped: $(sed -n 's/^backend cuda *not usable: //p' "$work/out")"
    exit 77
fi

# Small ones: reference kernels are slow.  The last words are settings.
trials() {
    cat <<'LIST'
mnist
mnist-keras
linear
resnet18-cifar batch.per_rank=1
vit-tiny model.depth=1
cosmogan model.size=16 model.width=2
wgan-gp
aae model.points=16 model.sum_over=2
LIST
}

few='data.kind=synthetic data.train_range=0:12 data.test_range=12:14 train.steps=3 batch.per_rank=2 train.validate_every=none'
weights() { echo "$work/$1/checkpoints/step-00000003/model.safetensors"; }

# train DEVICE FOLDER ARGUMENT...
train() {
    local device=$1 folder=$2
    shift 2
    rm -rf "${work:?}/$folder"
    run 0 train --device "$device" --threads 1 --run-dir "$work/$folder" "$@"
}

# Instance norms take away what a bias before them adds: its gradient is rounding alone, of which Adam makes whole steps.  So one
# step is compared, and not the moments.
first_step() {
    train ref ref "$@" train.steps=1
    train cuda cuda "$@" train.steps=1
    n=$((n + 1))
    tensors close "$work"/{ref,cuda}/checkpoints/step-00000001/model.safetensors 3e-3 '[.]adam[.]|bias|images'
}

# near TRIAL SETTING...: tolerance 1e-3 of the weights' length; f32 arithmetic of kernels differs in its order only
near() {
    train ref ref "$@"
    train cuda cuda "$@"
    n=$((n + 1))
    printf '%.60s: ' "$*"
    tensors close "$(weights ref)" "$(weights cuda)" 1e-3
}

while read -r trial settings; do
    # shellcheck disable=SC2086 # settings are words
    near "$trial" $few $settings
done < <(trials)
# shellcheck disable=SC2086
{
    first_step cyclegan $few model.size=32 model.width=2 model.blocks=1
    near mnist $few -n 2
    LOCKSTEP_CUDA_GRAPH=off near mnist $few
    LOCKSTEP_CUDA_LAYOUT=plain near cosmogan $few model.size=16 model.width=2
    LOCKSTEP_CUDA_CHECK=1 near mnist $few
    # 65536, the first scale, is about what these gradients can bear: which device leaves a step out is chance
    near mnist $few precision=fp16 fp16.initial_scale=1024
    near linear $few precision=fp16 fp16.initial_scale=1024
    near resnet18-cifar $few batch.per_rank=1 train.recompute=unit
    run 0 plan mnist precision=fp16 --device cuda --json
    if grep -qE '"impl": ?"host"' "$work/out"; then
        echo "precision=fp16: a node runs on the host"
        failures=$((failures + 1))
    fi
    run 0 train --resume="$work/cuda" --device cpu train.steps=4
    run 0 train --resume="$work/ref" --device cuda train.steps=4
}
[ "$failures" -eq 0 ] && echo "cuda: $n checks, all as expected"
exit $((failures > 0))
