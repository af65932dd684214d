#!/usr/bin/env bash
# gpu_early.sh [PROGRAM]: what it is worth on this machine's GPU to start kernels early (LOCKSTEP_CUDA_EARLY), and whether weights
# stay the same to the last bit; for one more column, products of few rows by cuBLASLt (LOCKSTEP_CUDA_SLIM=off).
#
# PROGRAM: lockstep (default: build/lockstep).  Environment: ROWS ("resnet18:48 aae:32"; default the smaller size of every network),
# MODES (off on slim-off), SECONDS_EACH (1.5) of timing, STEPS (6) that are compared, PRECISION (bf16).
# The first table has milliseconds a step, the second whether weights after STEPS steps are those of `off`, with the same kernels
# in all modes; exit status 1 where they are not.  Kernels are chosen in a first run of each row, which is not counted.
set -uo pipefail
program=${1:-build/lockstep}
rows=${ROWS:-mnist:64 resnet18:48 vit:96 cyclegan:1 cosmogan:64 aae:32}
modes=${MODES:-off on slim-off}
precision=${PRECISION:-bf16}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# with MODE COMMAND...: the command with the mode's switches
with() {
    local mode=$1
    shift
    case $mode in
    slim-off) LOCKSTEP_CUDA_SLIM=off "$@" ;;
    *) LOCKSTEP_CUDA_EARLY=$mode "$@" ;;
    esac
}

# step MODE MODEL BATCH: milliseconds, the median
step() {
    with "$1" "$program" bench "$2" batch.per_rank="$3" precision="$precision" --device cuda --seconds "${SECONDS_EACH:-1.5}" --json 2>"$work/err" | tail -n 1 |
        python3 -c 'import json, sys; print("%.4g" % (1e3 * json.load(sys.stdin)["step_s"]["p50"]))' 2>/dev/null || echo failed
}

# weights MODE MODEL BATCH: their hash after some steps
weights() {
    rm -rf "$work/run"
    with "$1" "$program" train "$2" --device cuda --run-dir "$work/run" data.kind=synthetic data.train_range=0:$((4 * $3)) data.test_range=0:1 \
        batch.per_rank="$3" precision="$precision" train.steps="${STEPS:-6}" train.validate_every=none train.checkpoint_every=none >"$work/log" 2>&1 ||
        { tail -n 1 "$work/log" >&2; echo failed; return; }
    sed -n 's/.*"weights_xxh3": *"\([0-9a-f]*\)".*/\1/p' "$work/run/summary.json"
}

heading=$(printf '%-14s' row; for mode in $modes; do printf ' %11s' "$mode"; done)
times=$heading same=$heading status=0
for row in $rows; do
    model=${row%:*} batch=${row#*:}
    step off "$model" "$batch" >/dev/null
    case " $modes " in *" slim-off "*) step slim-off "$model" "$batch" >/dev/null ;; esac
    times+=$'\n'$(printf '%-14s' "$row"; for mode in $modes; do printf ' %11s' "$(step "$mode" "$model" "$batch")"; done)
    want=$(weights off "$model" "$batch")
    line=$(printf '%-14s' "$row")
    for mode in $modes; do
        got=$(weights "$mode" "$model" "$batch")
        word=same
        [ "$mode" = slim-off ] && word=- # other sums
        [ "$mode" != slim-off ] && [ "$got" != "$want" ] && word=DIFFERENT status=1
        [ "$got" = failed ] && word=FAILED status=1
        line+=$(printf ' %11s' "$word")
    done
    same+=$'\n'$line
done
printf 'milliseconds a step (%s)\n%s\n\nweights after %s steps\n%s\n' "$precision" "$times" "${STEPS:-6}" "$same"
exit $status
