#!/usr/bin/env bash
# gpu_small_step.sh [PROGRAM]: where the time of a small network's step goes on this machine's GPU, and what each part of it is worth.
#
# PROGRAM: lockstep (default: build/lockstep).  Environment: ROWS ("mnist:64"), PRECISION (tf32), SECONDS_EACH (1.5) of timing,
# ROUNDS (3) of all modes in turn, STEPS (20) whose weights are compared, WORDS: further settings, as of another optimiser
# ("optimizer.name=adam optimizer.form=adamw optimizer.weight_decay=0.01").
# For every row a table: the mode, milliseconds a step (the median of each round), and whether weights are those of the first mode,
# to the last bit.  Then the same steps by CUPTI, if build/gpu-idle.so is there: the time of each kernel, and between which of them
# the GPU rests (with kernels started behind one another, which CUPTI can tell apart).  Exit status 1 where weights differ.
set -uo pipefail
program=${1:-build/lockstep}
read -ra words <<<"${WORDS:-}"
rows=${ROWS:-mnist:64}
precision=${PRECISION:-tf32}
modes=(
    'as it is|'
    'updates are kernels of their own|LOCKSTEP_CUDA_UPDATES=apart'
    'kernels start behind one another|LOCKSTEP_CUDA_EARLY=off'
    'copies are launches of their own|LOCKSTEP_CUDA_COPIES=alone'
)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# with SWITCHES COMMAND...
with() {
    local switches=$1
    shift
    # shellcheck disable=SC2086 # words of their own
    env $switches "$@"
}

# step SWITCHES MODEL BATCH: milliseconds, the median
step() {
    with "$1" "$program" bench "$2" batch.per_rank="$3" precision="$precision" "${words[@]}" --device cuda --seconds "${SECONDS_EACH:-1.5}" --json 2>"$work/err" | tail -n 1 |
        python3 -c 'import json, sys; print("%.4g" % (1e3 * json.load(sys.stdin)["step_s"]["p50"]))' 2>/dev/null || echo failed
}

# weights SWITCHES MODEL BATCH: their hash after some steps
weights() {
    rm -rf "$work/run"
    with "$1" "$program" train "$2" --device cuda --run-dir "$work/run" data.kind=synthetic data.train_range=0:$((4 * $3)) data.test_range=0:1 \
        batch.per_rank="$3" precision="$precision" "${words[@]}" train.steps="${STEPS:-20}" train.validate_every=none train.checkpoint_every=none >"$work/log" 2>&1 ||
        { tail -n 1 "$work/log" >&2; echo failed; return; }
    sed -n 's/.*"weights_xxh3": *"\([0-9a-f]*\)".*/\1/p' "$work/run/summary.json"
}

status=0
for row in $rows; do
    model=${row%:*} batch=${row#*:} want=
    declare -A times=()
    for mode in "${modes[@]}"; do step "${mode#*|}" "$model" "$batch" >/dev/null; done # kernels are compiled, and not counted
    for ((round = 0; round < ${ROUNDS:-3}; round++)); do
        for mode in "${modes[@]}"; do times[$mode]+=$(printf ' %8s' "$(step "${mode#*|}" "$model" "$batch")"); done
    done
    printf '%s of %s, %s: milliseconds a step\n' "$model" "$batch" "$precision"
    for mode in "${modes[@]}"; do
        got=$(weights "${mode#*|}" "$model" "$batch")
        word=same
        [ -z "$want" ] && want=$got
        [ "$got" = "$want" ] || { word=DIFFERENT status=1; }
        [ "$got" != failed ] || { word=FAILED status=1; }
        printf '%-36s%s  weights %s\n' "${mode%%|*}" "${times[$mode]}" "$word"
    done
    [ -f build/gpu-idle.so ] && CUDA_INJECTION64_PATH=build/gpu-idle.so LOCKSTEP_CUDA_EARLY=off \
        "$program" bench "$model" batch.per_rank="$batch" precision="$precision" "${words[@]}" --device cuda --seconds 1 2>&1 >/dev/null | tail -n 30
done
exit $status
