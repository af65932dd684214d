#!/usr/bin/env bash
# test_stall.sh: a rank that is stopped is named, with what it did last, and the run goes on when it does.
set -uo pipefail
. "$(dirname "$0")/cli_lib.sh"

"$LOCKSTEP" train mnist -n 2 --threads 1 --quiet batch.per_rank=8 data.kind=synthetic train.steps=1000000 parallel.stall_s=0.5 \
    --run-dir "$work/run" >"$work/out" 2>"$work/err" &
launcher=$!
reached "$work/run" 2 $launcher
stopped=$(pgrep -P $launcher | tail -n 1)
kill -STOP "$stopped"
# The report ends the wait; a run that never reports is ended by the test's own limit.
until grep -qh "not there:" "$work/err" "$work"/run/logs/* 2>/dev/null; do
    kill -0 $launcher 2>/dev/null || break
done
n=$((n + 1))
grep -h "not there:" "$work/err" "$work"/run/logs/* |
    grep -q "rank 0 has been waiting for .* s in .*not there: \(rank 1 (last in .*, step [0-9]*)\|nobody is missing\)" ||
    fail "rank 1 is not named: $(cat "$work/err" "$work"/run/logs/*)"
kill -CONT "$stopped"
kill -TERM $launcher
wait $launcher
code=$?
n=$((n + 1))
[ $code -eq 75 ] || fail "exit code $code, not 75: $(cat "$work/err")"
grep -h "not there:" "$work/err" | head -n 1

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
