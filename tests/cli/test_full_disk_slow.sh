#!/usr/bin/env bash
# `lockstep train` on a disk that fills up: it does not start where no checkpoint fits, and it goes on, with the last
# good checkpoint whole, where the room ends in the middle.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
small=(data.kind=synthetic data.train_range=0:200 data.test_range=200:216 batch.per_rank=8 train.validate_every=none)
mkdir disk
if ! mount -t tmpfs -o size=400k tmpfs disk 2>/dev/null; then
    echo "skipped: a small tmpfs cannot be mounted here (root can)"
    exit 77
fi
pid=
trap '[ -z "$pid" ] || kill -KILL $pid 2>/dev/null; umount -l "$work/disk" 2>/dev/null; rm -rf "$work"' EXIT

run 1 train mnist "${small[@]}" train.steps=4 --run-dir disk/run --quiet
says err 'disk/run/checkpoints'
says err 'are free'
says err 'are missing'
says err 'make room there'
says err '(--run-dir)'
umount disk || exit 1
mount -t tmpfs -o size=3m tmpfs disk || exit 1

# One that has far more steps than it can do meanwhile.
every=20
"$LOCKSTEP" train mnist "${small[@]}" train.steps=10000000 train.checkpoint_every=20st train.report_every=${every}st --run-dir disk/run \
    --quiet >out 2>err &
pid=$!
alive() {
    kill -0 $pid 2>/dev/null
}
# reported: the steps whose losses are in metrics.jsonl
reported() {
    sed -n 's/^{"step": \([0-9]*\),.*"train\/loss_step".*/\1/p' disk/run/metrics.jsonl
}
while alive && [ ! -e disk/run/checkpoints/last ]; do breathe; done
# Somebody takes all the room, also what was set aside for the next checkpoint.
while alive && ! { grep -q 'missing' err && grep -q 'metrics.jsonl: No space' err; }; do
    rm -f disk/run/checkpoints/.reserve
    cat /dev/zero >>disk/filler 2>/dev/null
    breathe
done
alive || fail "the run ended on a full disk: $(cat err)"
grep -qE '[0-9.]+ (KiB|MiB) are missing' err || fail "the warning does not say how much is missing: $(head -c 600 err)"
grep -qE 'a checkpoint needs .* \([0-9]+ bytes\) in disk/run/checkpoints.*; make room there' err || fail "the warning has no remedy: $(head -c 900 err)"
good=$(readlink disk/run/checkpoints/last)
run 0 ckpt verify "disk/run/checkpoints/$good"
# The room comes back, and so do checkpoints.
rm -f disk/filler
while alive && [ "$(readlink disk/run/checkpoints/last)" = "$good" ]; do breathe; done
alive || fail "the run ended after the room came back: $(cat err)"
while alive && ! grep -q 'metrics.jsonl can be written to again' err; do breathe; done
# The line that waited may be the only one: gaps would be between it and those before and after.
waited=$(reported | tail -n 1)
while alive && { [ "$(reported | wc -l)" -lt 3 ] || [ "$(reported | tail -n 1)" = "$waited" ]; }; do breathe; done
kill -TERM $pid
wait $pid
[ $? -eq 75 ] || fail "SIGTERM after a full disk: not exit code 75: $(cat err)"
pid=
run 0 ckpt verify disk/run/checkpoints/last
# Nothing that was reported meanwhile is missing.
reported | awk -v every=$every '$1 != last + every { bad = 1 } { last = $1 } END { exit bad || NR < 3 }' ||
    fail "metrics.jsonl has a gap: $(reported | tr '\n' ' ' | head -c 600)"
grep -q '"missing"' disk/run/summary.json && fail "the summary misses something: $(grep -A3 missing disk/run/summary.json)"
run 0 train mnist "${small[@]}" train.steps=1 --resume=disk/run --quiet

# The room does not come back: what is missing is said, and the state is known although summary.json could not be written.
steps=4000 # more than it can do before the disk is full
if slow_build; then steps=400; fi
umount disk || exit 1
mount -t tmpfs -o size=3m tmpfs disk || exit 1
"$LOCKSTEP" train mnist "${small[@]}" train.steps=$steps train.checkpoint_every=none train.report_every=1st --run-dir disk/run \
    --quiet >out 2>err &
pid=$!
while alive && [ ! -s disk/run/metrics.jsonl ]; do breathe; done
while alive; do
    rm -f disk/run/checkpoints/.reserve
    cat /dev/zero >>disk/filler 2>/dev/null
    breathe
done
wait $pid
[ $? -eq 1 ] || fail "a full disk to the end: not exit code 1: $(head -c 600 err)"
pid=
grep -qE 'metrics.jsonl: [0-9]+ metrics were lost: No space' err || fail "nobody says what is missing: $(head -c 600 err)"
[ "$(grep -c 'summary.json: No space' err)" -le 4 ] || fail "the same warning again and again: $(head -c 600 err)"
rm -f disk/filler
run 0 report disk/run --out "$work/page" --json
says out '"state":"failed"'

[ "$failures" -eq 0 ] && echo "full disk: all as expected"
exit $((failures > 0))
