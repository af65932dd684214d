#!/usr/bin/env bash
# A rank is killed at a random moment of a run: the launcher names it first, ends with 4, and leaves no process behind.
# The same when the launcher is killed.  LS_MOMENTS: how many moments; LS_SEED: repeats those of an earlier test.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
moments=${LS_MOMENTS:-4}
seed=${LS_SEED:-$$}
RANDOM=$seed
gone_us=2000000 # how long after the kill the last process of a run may be seen
slowest=0

# start RUN: four ranks that train until they are ended; pids: the launcher and its ranks in their order
start() {
    "$LOCKSTEP" train mnist data.kind=synthetic data.train_range=0:200 data.test_range=200:240 batch.per_rank=4 -n 4 \
        train.steps=100000000 train.report_every=1st train.checkpoint_every=5st --run-dir "$1" --quiet >"$work/out" 2>"$work/err" &
    launcher=$!
    while kill -0 $launcher 2>/dev/null; do
        read -ra pids <"/proc/$launcher/task/$launcher/children"
        [ ${#pids[@]} -eq 4 ] && break
        breathe
    done
    pids=($launcher "${pids[@]}")
    [ ${#pids[@]} -eq 5 ] || fail "$1: there are no four ranks: $(cat "$work/err")"
}

# A process that ended but whose parent has not asked for it yet is gone.
is_alive() {
    local state
    state=$(sed -n 's/.*) \(.\) .*/\1/p' "/proc/$1/stat" 2>/dev/null)
    [ -n "$state" ] && [ "$state" != Z ]
}

# all_gone WHAT: waits for the end of all processes of the run, no longer than allowed
all_gone() {
    local begun=${EPOCHREALTIME/./} took pid
    n=$((n + 1))
    for pid in "${pids[@]}"; do
        while is_alive "$pid"; do
            took=$((${EPOCHREALTIME/./} - begun))
            if [ $took -gt $gone_us ]; then
                fail "$1: process $pid is still there after $took us (launcher and ranks: ${pids[*]})"
                kill -KILL "${pids[@]}" 2>/dev/null
            fi
            breathe
        done
    done
    took=$((${EPOCHREALTIME/./} - begun))
    [ $took -gt $slowest ] && slowest=$took
}

for k in $(seq "$moments"); do
    rank=$((RANDOM % 4))
    # The first moment is the start: no rank has reported anything.
    line=$((k == 1 ? 0 : RANDOM % 40))
    moment="seed $seed, moment $k (rank $rank, line $line)"
    start "run-$k"
    [ $line -eq 0 ] || reached "run-$k" $line $launcher
    victim=${pids[rank + 1]}
    kill -KILL "$victim"
    all_gone "$moment"
    wait $launcher
    code=$?
    [ $code -eq 4 ] || fail "$moment: exit code $code, not 4: $(cat "$work/err")"
    said=$(head -n 1 "$work/err")
    [[ $said == "lockstep: rank $rank (host "*", pid $victim) was killed by signal 9 "* ]] ||
        fail "$moment: not the rank and its signal first: $(cat "$work/err")"
    # Whatever was being written: what is there can be used.
    if [ -e "run-$k/checkpoints/last" ]; then
        run 0 ckpt verify "run-$k/checkpoints/last"
    fi
done

# Where steps are on their way while the host goes on: the last one that was complete on all ranks is told like any other.
needs_python
"$LOCKSTEP" train linear data.kind=synthetic data.train_range=0:200 data.test_range=200:240 batch.per_rank=4 -n 2 --device far \
    train.steps=100000000 train.report_every=1st train.checkpoint_every=none train.validate_every=none --run-dir far --quiet \
    >"$work/out" 2>"$work/err" &
launcher=$!
reached far 20 $launcher
read -ra pids <"/proc/$launcher/task/$launcher/children"
kill -KILL "${pids[1]}"
wait $launcher
n=$((n + 1))
python3 - far <<'P' || fail "far: the last complete step is not in the metrics: $(cat "$work/err")"
import json, sys
steps = json.load(open(sys.argv[1] + "/summary.json"))["steps"]
told = [json.loads(line)["step"] for line in open(sys.argv[1] + "/metrics.jsonl")]
assert set(told) == set(range(1, steps + 1)), (steps, told[-3:])  # an epoch has a line of its own
P

start by-launcher
reached by-launcher 5 $launcher
kill -KILL $launcher
all_gone "the launcher was killed"
wait $launcher

pids=()
[ $failures -eq 0 ] && echo "test_ranks_killed: $n checks passed; the last process was gone after $((slowest / 1000)) ms at most"
exit $((failures > 0))
