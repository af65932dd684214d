#!/usr/bin/env bash
# Machines that were started with different settings: whatever the ranks would have done together because of it, the setting names
# itself, on both, in training, measuring and evaluation.
set -uo pipefail
. "$(dirname "$0")/machines_lib.sh"
make_machines 2
small=(data.kind=synthetic data.train_range=0:64 data.test_range=64:80 batch.global=16)

# differ COMMAND SETTING DEFAULT: machine 1 has the setting, machine 0 what the experiment says.
differ() {
    local i command=$1 setting=$2 default=${*:3} words
    for i in 1 0; do
        words=("$command" mnist "${small[@]}")
        [ "$command" = eval ] && words=(eval "$work/run" "${small[@]}")
        [ "$command" = train ] && words+=(train.steps=2 --quiet --run-dir "$work/apart")
        [ "$command" = bench ] && words+=(--steps 2)
        [ "$i" = 1 ] && words+=("$setting")
        on "$i" env MASTER_ADDR="$net.1" MASTER_PORT=$port NODE_RANK="$i" "$LOCKSTEP" "${words[@]}" -n 1 --nodes 2 &
    done
    wait
    for i in 0 1; do code $i 5; done
    n=$((n + 1))
    grep -qF "rank 1 was started with another experiment than rank 0: $setting (rank 0: $default)" "$work/out.0" "$work/out.1" ||
        fail "$command: nobody names $setting: $(head -c 400 "$work/out.0") / $(head -c 400 "$work/out.1")"
}

"$LOCKSTEP" train mnist "${small[@]}" train.steps=1 --run-dir "$work/run" --quiet >"$work/out.one" 2>&1 || fail "$(cat "$work/out.one")"
for case in "parallel.strategy=zero1 ddp" "parallel.strategy=fsdp ddp" "reproducible=true false" "parallel.wire=bf16 fp32" \
    "parallel.accumulate=2 1" "train.on_nonfinite=skip stop" "precision=fp16 fp32" "precision=bf16 fp32" "memory.limit=1GiB not set" \
    "train.freeze=fc1* not set" "optimizer.lr=0.5 0.01"; do
    for command in train bench eval; do
        # shellcheck disable=SC2086 # a setting and what stands for its value
        set -f && differ $command $case && set +f
    done
done
[ ! -e "$work/apart" ] || fail "machines that differ began a run"

# What does not change the plans is rank 0's to say: machine 1 takes part in whatever is measured besides.
for extra in "--export $work/parts.json --steps 4" "--profile --seconds 0.1"; do
    # shellcheck disable=SC2046 # an option and its value
    for i in 1 0; do
        on "$i" env MASTER_ADDR="$net.1" MASTER_PORT=$port NODE_RANK="$i" "$LOCKSTEP" bench mnist "${small[@]}" -n 1 --nodes 2 \
            $([ "$i" = 1 ] && echo "--steps 7" || echo "$extra") &
    done
    wait
    for i in 0 1; do code $i 0; done
    says 0 "samples/s"
done
[ -s "$work/parts.json" ] || fail "nothing was exported"
# What it is timed against is a plan.
# shellcheck disable=SC2046 # an option and its value
for i in 1 0; do
    on "$i" env MASTER_ADDR="$net.1" MASTER_PORT=$port NODE_RANK="$i" "$LOCKSTEP" bench mnist "${small[@]}" -n 1 --nodes 2 --steps 2 \
        $([ "$i" = 1 ] || echo --against parallel.overlap) &
done
wait
for i in 0 1; do code $i 5; done
grep -qF -- "--against, which all machines must be given" "$work/out.0" "$work/out.1" || fail "--against on one machine: $(head -c 400 "$work/out.0")"
nobody_left

finish
