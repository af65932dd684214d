#!/usr/bin/env bash
# What rank 0 decides reaches ranks of another machine, also over numbers of 16 bits; and a run goes on there, whether or not that
# machine sees the run's disk.
set -uo pipefail
. "$(dirname "$0")/machines_lib.sh"
make_machines 2
every=(data.train_range=0:150 data.test_range=150:166 batch.global=24 train.keep=9)
for key in train.validate_every train.checkpoint_every train.report_every train.sample_every train.output_every \
    parallel.verify_every; do
    every+=("$key=1e-9min") # shorter than any step: due after each
done

# counts METRIC N: run.0 has so many values of it
counts() {
    local got
    got=$(grep -c "\"$1\"" "$work/run.0/metrics.jsonl")
    n=$((n + 1))
    [ "$got" -eq "$2" ] || fail "$got times $1, not $2"
}

for how in parallel.wire=fp32 parallel.wire=bf16 parallel.wire=fp16 "parallel.wire=bf16 parallel.accumulate=2" reproducible=true; do
    # shellcheck disable=SC2086 # several settings
    for i in 1 0; do start $i -n 2 --nodes 2 "${every[@]}" train.steps=5 $how --quiet; done
    wait
    for i in 0 1; do code $i 0; done
    counts val/loss_epoch 5
    counts train/loss_step 5
done
nobody_left

# --- goes on: with the run's settings on both machines, then where machine 1 does not see them -------------------
for i in 1 0; do start $i -n 2 --nodes 2 "${every[@]}" train.steps=4 optimizer.lr=0.03 --quiet; done
wait
for i in 1 0; do start $i -n 2 --nodes 2 --resume="$work/run.0" train.steps=6 --quiet; done
wait
for i in 0 1; do code $i 0; done
counts val/loss_epoch 6
start 1 -n 2 --nodes 2 --resume="$work/elsewhere" "${every[@]}" optimizer.lr=0.03 train.steps=8 --quiet
start 0 -n 2 --nodes 2 --resume="$work/run.0" train.steps=8 --quiet
wait
for i in 0 1; do code $i 0; done
counts val/loss_epoch 8
start 1 -n 2 --nodes 2 --resume="$work/elsewhere" "${every[@]}" train.steps=9 --quiet
start 0 -n 2 --nodes 2 --resume="$work/run.0" train.steps=9 --quiet
wait
for i in 0 1; do code $i 5; done
says 0 'optimizer.lr=0.01 (rank 0: 0.03)'
nobody_left

# --- eval and infer compare what lies on each machine, as training does -------------------------------------------
start 0 train.steps=1 batch.per_rank=8 --quiet
wait
for folder in whole fewer unlabelled; do "$LOCKSTEP" data make kind=idx path="$work/$folder" >/dev/null; done
rm "$work"/unlabelled/t10k-labels-*
# The first 100 of 200 test samples: the number is bytes 4 to 7.
for file in images-idx3 labels-idx1; do
    at=$work/fewer/t10k-$file-ubyte head=8 each=1
    [ $file = images-idx3 ] && head=16 each=784
    printf '\0\0\0\144' | dd of="$at" bs=1 seek=4 conv=notrunc status=none
    truncate -s $((head + 100 * each)) "$at"
done
# evaluate COMMAND FOLDER FOLDER: on machine 0 and on machine 1
evaluate() {
    local i folder
    for i in 1 0; do
        folder=$([ $i = 0 ] && echo "$2" || echo "$3")
        on $i env MASTER_ADDR="$net.1" MASTER_PORT=$port NODE_RANK=$i "$LOCKSTEP" "$1" "$work/run.0" data.kind=idx data.path="$work/$folder" -n 1 --nodes 2 &
    done
    wait
}
evaluate infer unlabelled unlabelled
for i in 0 1; do code $i 0; done
for case in "eval whole fewer" "infer fewer whole" "infer whole unlabelled" "infer unlabelled whole"; do
    # shellcheck disable=SC2086 # three words
    evaluate $case
    for i in 0 1; do code $i 5; done
    says 0 'the test data differ: rank 0 on'
done
nobody_left

finish
