#!/usr/bin/env bash
# test_stall.sh: a rank that is stopped is named, with what it did last, and the run goes on when it does; a run whose
# ranks get nothing done obeys a request to stop, and ends itself after its limit.  No process stays behind.
set -uo pipefail
. "$(dirname "$0")/cli_lib.sh"

# start NAME SETTING...: trains on 2 ranks until it is stopped
start() {
    name=$1
    shift
    "$LOCKSTEP" train mnist -n 2 --threads 1 --quiet batch.per_rank=8 data.kind=synthetic train.steps=1000000 \
        --run-dir "$work/$name" "$@" >"$work/out" 2>"$work/err" &
    launcher=$!
    reached "$work/$name" 2 $launcher
    mapfile -t ranks < <(pgrep -P $launcher)
}

# ends CODE STATE: the run ends with this code, leaves this state and no process
ends() {
    local code
    wait $launcher
    code=$?
    n=$((n + 3))
    [ $code -eq "$1" ] || fail "$name: exit code $code, not $1: $(cat "$work/err")"
    grep -q "\"state\": \"$2\"" "$work/$name/summary.json" ||
        fail "$name: not $2: $(grep -h '"state"\|"error"' "$work/$name/summary.json")"
    kill -0 "${ranks[@]}" 2>/dev/null && fail "$name: a rank is left"
}

# Warned of, and continued.
start continued parallel.stall_s=0.5 parallel.stall_limit=60
kill -STOP "${ranks[1]}"
# The report ends the wait; a run that never reports ends by its own limit.
until grep -qh "not there:" "$work/err" "$work/continued"/logs/* 2>/dev/null; do
    kill -0 $launcher 2>/dev/null || break
    breathe
done
n=$((n + 1))
grep -h "not there:" "$work/err" "$work/continued"/logs/* |
    grep -q "rank 0 has been waiting for .* s in .*not there: rank 1 (last in .*, step [0-9]*)" ||
    fail "rank 1 is not named: $(cat "$work/err" "$work/continued"/logs/*)"
kill -CONT "${ranks[1]}"
kill -TERM $launcher
ends 75 paused

# Asked to stop while rank 1, then rank 0, then both are stopped.
for stopped in 1 0 both; do
    start "asked-$stopped"
    if [ $stopped = both ]; then kill -STOP "${ranks[@]}"; else kill -STOP "${ranks[$stopped]}"; fi
    if [ $stopped = 1 ]; then kill -INT $launcher; else kill -TERM $launcher; fi
    ends $([ $stopped = 1 ] && echo 130 || echo 143) killed
    for rank in 0 1; do
        n=$((n + 1))
        if [ $stopped = both ] || [ $stopped = $rank ]; then
            grep -q "asked to stop.* rank $rank (pid ${ranks[$rank]}) is stopped, last in \".*\" of step [0-9]*" "$work/err"
        else
            grep -q "asked to stop.* rank $rank waits in \".*\" of step [0-9]*" "$work/err"
        fi || fail "asked-$stopped: rank $rank is not named: $(cat "$work/err")"
    done
done
n=$((n + 1))
grep -q '"error": "asked to stop' "$work/asked-1/summary.json" || fail "summary.json does not say why"

# Not asked: the limit.
start limit parallel.stall_s=0.5 parallel.stall_limit=3
kill -STOP "${ranks[1]}"
ends 4 failed
n=$((n + 1))
grep -q "no rank has got on for .*: rank 0 waits in .*; rank 1 (pid ${ranks[1]}) is stopped, last in" "$work/err" ||
    fail "limit: not said: $(cat "$work/err")"

# A request while ranks start and have not met.
# (The model is one that takes longer to compile than its ranks to be seen.)
"$LOCKSTEP" train resnet18 -n 2 --threads 1 --quiet data.kind=synthetic batch.per_rank=16 --run-dir "$work/start" >"$work/out" 2>"$work/err" &
launcher=$!
until mapfile -t ranks < <(pgrep -P $launcher) && [ ${#ranks[@]} -eq 2 ]; do kill -0 $launcher || break; breathe; done
kill -STOP "${ranks[1]}"
kill -TERM $launcher
wait $launcher
code=$?
n=$((n + 2))
[ $code -eq 75 ] || fail "start: exit code $code: $(cat "$work/err")"
kill -0 "${ranks[@]}" 2>/dev/null && fail "start: a rank is left"
# What it may have begun is no run, and another may begin there.
run 0 train mnist --threads 1 --quiet data.kind=synthetic train.steps=1 data.test_range=0:8 --run-dir "$work/start"

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
