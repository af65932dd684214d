#!/usr/bin/env bash
# Ranks that a real mpirun started, of which one is stopped: its neighbours end the run after the limit and after a request, also
# where there are other machines.  Who merely waits for another machine ends nothing by itself.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/../tools/mpi_here.sh"
needs_mpi
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
export LOCKSTEP_THREADS=1

# start NAME RANKS SETTING...: trains until it is stopped; a run that does not end does so by the time that is its bound
start() {
    name=$1
    timeout -k 5 60 "${mpi[@]}" -n "$2" "$LOCKSTEP" train mnist --quiet batch.per_rank=8 data.kind=synthetic train.steps=1000000 \
        train.report_every=1st --run-dir "$work/$name" "${@:3}" >"$work/out" 2>"$work/err" &
    starter=$!
    pids+=($starter)
    reached "$work/$name" 2 $starter
    mapfile -t ranks < <(pgrep -P "$(pgrep -P $starter)" -f "$LOCKSTEP")
    pids+=("${ranks[@]}")
}

# is_there PID: and has not ended, though nobody may have asked for its end
is_there() {
    grep -q '^State:.[^Z]' "/proc/$1/status" 2>/dev/null
}

# ends CODE TEXT: the run ends with this code, says this (a pattern) and leaves no process
ends() {
    local code pid k
    wait $starter
    code=$?
    n=$((n + 3))
    [ $code -eq "$1" ] || fail "$name: exit code $code, not $1: $(cat "$work/err")"
    grep -q "$2" "$work/err" || fail "$name: not said: $(cat "$work/err")"
    for pid in "${ranks[@]}"; do # those that mpirun has killed may be a moment in going
        for k in $(seq 500); do is_there "$pid" || break; breathe; done
        is_there "$pid" && fail "$name: a rank is left"
    done
}

limit=(parallel.stall_s=0.5 parallel.stall_limit=3)

# One machine.
start here 2 "${limit[@]}"
kill -STOP "${ranks[1]}"
ends 4 "no rank has got on for .*: rank 0 waits in .*; rank 1 (pid ${ranks[1]}) is stopped, last in"
n=$((n + 1))
grep -q '"state": "failed"' "$work/here/summary.json" || fail "here: $(grep '"state"' "$work/here/summary.json")"

# Two machines of two ranks: the neighbour of the one that is stopped knows.
export LOCKSTEP_COMM_HOSTS=2
start two 4 "${limit[@]}"
kill -STOP "${ranks[3]}"
ends 4 "no rank of this machine has got on for .*rank 3 (pid ${ranks[3]}) is stopped, last in"

# The same with a request and no limit: it does not take what a rank gets that waits for others.
start asked 4 parallel.stall_limit=0
kill -STOP "${ranks[3]}"
kill -TERM "${ranks[@]}"
ends 143 "asked to stop, but nobody gets on: .*rank 3 (pid ${ranks[3]}) is stopped, last in"

# Two machines of one rank: nobody there sees that the one that is waited for is stopped, and it may as well be busy.
start alone 2 "${limit[@]}"
kill -STOP "${ranks[1]}"
until grep -q "has been waiting for .*not there: rank 1 of another machine" "$work/err" || ! kill -0 $starter; do breathe; done
sleep 3 # twice the limit
kill -CONT "${ranks[1]}"
steps=$(wc -l <"$work/alone/metrics.jsonl")
until [ "$(wc -l <"$work/alone/metrics.jsonl")" -gt "$((steps + 2))" ] || ! kill -0 $starter; do breathe; done
kill -TERM "${ranks[@]}"
ends 75 "has been waiting for"

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
