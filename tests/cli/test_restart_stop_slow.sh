#!/usr/bin/env bash
# test_restart_stop_slow.sh: a request to stop wins over a restart, whether it comes with the loss of a rank or while
# the launcher waits before it starts the ranks again; these waits grow.
set -uo pipefail
. "$(dirname "$0")/cli_lib.sh"

start() {
    name=$1
    "$LOCKSTEP" train mnist -n 2 --threads 1 --quiet batch.per_rank=8 data.kind=synthetic train.steps=1000000 \
        max_restarts=9 --run-dir "$work/$name" >"$work/out" 2>"$work/err" &
    launcher=$!
}

# ranks_of: waits until both are there
ranks_of() {
    until mapfile -t ranks < <(pgrep -P $launcher) && [ ${#ranks[@]} -eq 2 ]; do
        kill -0 $launcher 2>/dev/null || return
        breathe
    done
}

ended() {
    wait $launcher
    code=$?
    n=$((n + 2))
    [ $code -eq "$1" ] || fail "$name: exit code $code, not $1: $(cat "$work/err")"
    pgrep -f -- "--run-dir $work/$name" >/dev/null && fail "$name: a process is left"
}

# Rank 1 cannot take the request any more.
start at-once
reached "$work/at-once" 2 $launcher
ranks_of
kill -STOP "${ranks[1]}"
kill -TERM $launcher
kill -KILL "${ranks[1]}"
# One that is started again would train for ever.
while kill -0 $launcher 2>/dev/null; do
    grep -q "restart 1 of" "$work/err" && { fail "it was started again: $(cat "$work/err")"; kill -TERM $launcher; break; }
    breathe
done
ended 4
says err "not started again"
n=$((n + 1))

# Lost as soon as they are there, until a wait is long enough to be met.
start waiting
until grep -q "restart 4 of 9, .*, in 4 s" "$work/err"; do
    kill -0 $launcher 2>/dev/null || break
    for rank in $(pgrep -P $launcher); do kill -KILL "$rank" 2>/dev/null; done
    breathe
done
kill -TERM $launcher
begun=$(date +%s%N)
ended 143
n=$((n + 1))
[ $((($(date +%s%N) - begun) / 1000000)) -lt 3000 ] || fail "the wait was not ended"
n=$((n + 1))
waits=$(sed -n 's/.*restart [0-9]* of 9, .*, in \(.*\) s$/\1/p' "$work/err" | tr '\n' ' ')
[ "$waits" = "0.5 1 2 4 " ] || fail "waits of $waits"
says err "asked to stop: not started again"

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
