#!/usr/bin/env bash
# What ranks send between machines, counted where it leaves them, is what the strategy promises: of P bytes of weights on N
# machines ddp and zero1 2 P (N-1)/N in a step, fsdp 3 P (N-1)/N, and 2 P (N-1)/N where weights are gathered in 16 bits; and the plan
# says so beforehand.  Four ranks on four hosts that are made of one, by a real mpirun.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/../tools/mpi_here.sh"
needs_mpi
export LOCKSTEP_COMM_HOSTS=4 LOCKSTEP_TUNE=off
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# sent STRATEGY[,PRECISION] STEPS: bytes of all ranks, and the plan's of one rank in a step
sent() {
    local how=(parallel.strategy="${1%,*}")
    case $1 in fsdp*) how+=(parallel.reshard=always) ;; esac
    case $1 in *,*) how+=(precision="${1#*,}") ;; esac
    rm -rf "$folder/run"
    timeout 120 "${mpi[@]}" -n 4 "$LOCKSTEP" train vit-tiny --threads 1 --run-dir "$folder/run" data.kind=synthetic \
        data.train_range=0:256 data.test_range=256:272 train.validate_every=none batch.per_rank=4 train.steps="$2" \
        "${how[@]}" >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
    sed -n 's/.*"sent_bytes": *\([0-9]*\).*/\1/p; s/.*"bytes_per_step": *\([0-9.]*\).*/\1/p' "$folder/run/summary.json" | sort -n
}

weights=$((4 * $("$LOCKSTEP" plan vit-tiny --json | sed -n 's/.*"trained": *\([0-9]*\).*/\1/p')))
failures=0
for case in ddp:2 zero1:2 fsdp:3 fsdp,bf16:2; do
    strategy=${case%:*} times=${case#*:}
    # Of ten steps: what is sent besides (fsdp gathers weights for the test at the end) is the same in both runs.
    short=$(sent "$strategy" 2 | tail -n 1)
    long=$(sent "$strategy" 12)
    planned=$(head -n 1 <<<"$long")
    measured=$((($(tail -n 1 <<<"$long") - short) / 40))
    wanted=$((times * weights * 3 / 4))
    # Vectors are gathered in fp32: more than a hundredth of so small a model.
    case $strategy in *,bf16) percent=2 ;; *) percent=1 ;; esac
    for figure in "${planned%.*}" "$measured"; do
        if [ $((figure > wanted ? figure - wanted : wanted - figure)) -gt $((wanted * percent / 100)) ]; then
            echo "$strategy: $figure bytes, wanted $wanted within $percent %"
            failures=$((failures + 1))
        fi
    done
    echo "$strategy: a rank sends $measured bytes in a step, planned ${planned%.*}, by the formula $wanted"
done

# The norm by which pieces are clipped travels as it is, also where gradients travel in 16 bits: too large for those, it
# would be infinite, and weights stand still.
loss() {
    rm -rf "$folder/run"
    timeout 120 "${mpi[@]}" -n 4 "$LOCKSTEP" train mnist --threads 1 --run-dir "$folder/run" data.kind=synthetic data.train_range=0:64 \
        data.test_range=64:81 train.steps=8 batch.per_rank=4 parallel.wire=fp16 precision=fp16 parallel.clip_norm=0.5 optimizer.lr=0.1 \
        parallel.strategy="$1" >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
    python3 -c 'import json, sys; print(int(1e6 * json.load(open(sys.argv[1]))["metrics"]["test"]["loss"]))' "$folder/run/summary.json"
}
whole=$(loss ddp) pieces=$(loss zero1)
if [ $((whole > pieces ? whole - pieces : pieces - whole)) -gt 1000 ]; then
    echo "clipped on a wire of 16 bits: loss $pieces millionths under zero1, $whole under ddp"
    failures=$((failures + 1))
fi
exit $((failures > 0))
