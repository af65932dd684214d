#!/usr/bin/env bash
# A run that loses a rank goes on by itself from its last checkpoint, as often as max_restarts says, and ends with the
# same weights.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
small=(data.kind=synthetic data.train_range=0:400 data.test_range=400:440 batch.global=16 train.validate_every=none
    train.checkpoint_every=5st train.report_every=1st train.steps=400)

hash() {
    grep -o '"weights_xxh3": "[0-9a-f]*"' "$1/summary.json"
}

# lines RUN: steps that the run has reported
lines() {
    if [ -e "$1/metrics.jsonl" ]; then wc -l <"$1/metrics.jsonl"; else echo 0; fi
}

# killed RUN RANKS TIMES: trains and kills a rank TIMES times, each after some more steps; returns the exit code
killed() {
    local name=$1 ranks=$2 times=$3 pid victim before k
    "$LOCKSTEP" train mnist "${small[@]}" max_restarts=2 -n "$ranks" --run-dir "$name" --quiet >"$work/out" 2>"$work/err" &
    pid=$!
    for k in $(seq "$times"); do
        before=$(lines "$name")
        while kill -0 $pid 2>/dev/null && { [ ! -e "$name/checkpoints/last" ] || [ "$(lines "$name")" -lt $((before + 20)) ]; }; do breathe; done
        victim=$(pgrep -P $pid | sort -n | tail -1)
        [ -n "$victim" ] && kill -KILL "$victim"
        # The next round counts from what the next ranks report.
        while kill -0 $pid 2>/dev/null && [ -n "$victim" ] && kill -0 "$victim" 2>/dev/null; do breathe; done
    done
    wait $pid
}

run 0 train mnist "${small[@]}" -n 2 --run-dir whole --quiet
killed twice 2 2
code=$?
[ $code -eq 0 ] || fail "two kills, two restarts: exit code $code: $(cat "$work/err")"
says err 'restart 1 of 2, from the last checkpoint'
[ "$(hash twice)" = "$(hash whole)" ] || fail "after restarts $(hash twice), without $(hash whole)"
grep -q '"restart": 0.0,' twice/summary.json && fail "the ledger knows nothing of the restart"

# One rank has a launcher, too.
run 0 train mnist "${small[@]}" --run-dir alone-whole --quiet
killed alone 1 1
code=$?
[ $code -eq 0 ] || fail "one rank killed once: exit code $code: $(cat "$work/err")"
[ "$(hash alone)" = "$(hash alone-whole)" ] || fail "one rank: after a restart $(hash alone), without $(hash alone-whole)"

killed thrice 2 3
code=$?
[ $code -eq 4 ] || fail "three kills, two restarts: exit code $code, not 4: $(cat "$work/err")"
says err 'restart 2 of 2'

[ $failures -eq 0 ] && echo "test_restart: $n checks passed"
exit $((failures > 0))
