#!/usr/bin/env bash
# A request to stop that comes during a validation, or during the test at the end, is obeyed between two batches, by all ranks together:
# the run is paused without the result, does what it owes first of all when it goes on, and ends as if it had never been asked.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
# Five thousand batches of one sample take a second and more; a step takes none.
long=40:5160
common=(mnist data.kind=synthetic data.train_range=0:20 batch.per_rank=1 train.report_every=1st train.checkpoint_every=none --quiet)
validating=("${common[@]}" data.test_range=20:40 data.val_range=$long train.steps=3 train.validate_every=2st)
testing=("${common[@]}" data.test_range=$long train.steps=2 train.validate_every=none)

# rows RUN NAME: how often metrics.jsonl has it
rows() {
    grep -c "\"$2\"" "$1/metrics.jsonl"
}

# same WHAT GOT WANT
same() {
    n=$((n + 1))
    [ "$2" = "$3" ] || fail "$1: \"$2\", not \"$3\""
}

# interrupt RUN signal|stop ARGUMENT...: trains, and asks for a stop when the second step is done: what is long comes next
interrupt() {
    local run=$1 how=$2 pid
    shift 2
    "$LOCKSTEP" train "$@" --run-dir "$run" >out 2>"$work/err" &
    pid=$!
    reached "$run" 2 $pid
    if [ "$how" = signal ]; then kill -TERM $pid; else "$LOCKSTEP" runs stop "$run" >/dev/null; fi
    wait $pid
    same "$run: exit code" $? 75
    same "$run: state" "$(grep -o '"state": "[a-z]*"' "$run/summary.json")" '"state": "paused"'
}

# As if it had never been asked.
run 0 train "${validating[@]}" --run-dir whole
for case in "1 signal" "2 stop" "2 signal reproducible=true parallel.shards=2"; do
    read -r ranks how more <<<"$case"
    name=validating-$ranks-${more:+reproducible}
    if [ "$ranks" = 2 ]; then run 0 train "${validating[@]}" -n 2 $more --run-dir "whole-$name"; fi
    interrupt "$name" "$how" "${validating[@]}" -n "$ranks" $more
    same "$name: validations while it was asked to stop" "$(rows "$name" val/loss_epoch)" 0
    same "$name: its checkpoint" "$(ls "$name/checkpoints")" "$(printf 'last\nstep-00000002')"
    run 0 train --resume "$name" --quiet
    whole=$([ "$ranks" = 2 ] && echo "whole-$name" || echo whole)
    for key in val/loss_epoch train/loss_step; do
        same "$name: $key" "$(grep -o "\"$key\": [0-9.e+-]*" "$name/metrics.jsonl")" "$(grep -o "\"$key\": [0-9.e+-]*" "$whole/metrics.jsonl")"
    done
    same "$name: weights" "$(hash "$name")" "$(hash "$whole")"
    same "$name: the best" "$(readlink "$name/checkpoints/best")" "$(readlink "$whole/checkpoints/best")"
done

# Killed when it has done what it owed and has no newer checkpoint, it does it again, and has it once.
interrupt owing signal "${common[@]}" data.test_range=20:40 data.val_range=$long train.steps=100000 train.validate_every=2st train.keep_best=0
"$LOCKSTEP" train --resume owing --quiet >out 2>"$work/err" &
pid=$!
pids+=($pid)
while kill -0 $pid && [ "$(rows owing train/loss_step)" -lt 3 ]; do breathe; done
{ kill -KILL $pid && wait $pid; } 2>/dev/null
pids=()
same "owing: validations before it was killed" "$(rows owing val/loss_epoch)" 1
run 0 train --resume owing --quiet train.steps=3
same "owing: validations" "$(rows owing val/loss_epoch)" 1
same "owing: steps" "$(rows owing train/loss_step)" 3

# The test at the end is all that is left.
run 0 train "${testing[@]}" --run-dir tested
interrupt testing signal "${testing[@]}"
n=$((n + 1))
grep -q '"test"' testing/summary.json && fail "the test was not given up: $(cat testing/summary.json)"
run 0 train --resume testing --quiet
same "the test" "$(grep -A3 '"test": {' testing/summary.json)" "$(grep -A3 '"test": {' tested/summary.json)"
same "state" "$(grep -o '"state": "[a-z]*"' testing/summary.json)" '"state": "completed"'
same "steps" "$(rows testing train/loss_step)" 2

# Whoever only evaluates has nothing to keep, and ends at once.
for ranks in 1 2; do
    "$LOCKSTEP" eval tested batch.per_rank=1 -n $ranks --threads 1 >out 2>"$work/err" &
    pid=$!
    until mapfile -t children < <(pgrep -P $pid) && [ ${#children[@]} -ge $((ranks > 1 ? ranks : 0)) ]; do breathe; done
    kill -TERM $pid
    wait $pid
    same "eval on $ranks: exit code" $? 143
    n=$((n + 1))
    grep -q loss out && fail "eval on $ranks went on to its end: $(cat out)"
done

[ "$failures" -eq 0 ] && echo "$n checks of a stop during an evaluation: all as expected"
exit $((failures > 0))
