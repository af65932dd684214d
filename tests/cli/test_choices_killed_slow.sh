#!/usr/bin/env bash
# A run that times its kernels and is killed goes on with those: they are kept before its first step, so that it ends with the bits of
# a run that was never killed.  Two runs that time at once both keep theirs.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
unset LOCKSTEP_TUNE
export LOCKSTEP_CACHE=$work/choices

# choices FOLDER: lines of the file of choices in there
choices() {
    cat "$1"/cpu-1-*.txt 2>/dev/null | wc -l
}

common=(data.kind=synthetic data.train_range=0:400 data.test_range=400:432 batch.per_rank=16 train.validate_every=none --quiet)
many=(mnist "${common[@]}" train.steps=20000 train.checkpoint_every=5st)
"$LOCKSTEP" train "${many[@]}" --run-dir killed >"$work/out" 2>"$work/err" &
pids=($!)
while kill -0 "${pids[0]}" 2>/dev/null && [ ! -e killed/checkpoints/last ]; do breathe; done
kill -KILL "${pids[@]}" # of a single rank there is no other process
wait "${pids[@]}" 2>/dev/null
pids=()
n=$((n + 3))
[ -e killed/checkpoints/last ] || fail "there is no checkpoint: $(cat "$work/err")"
grep -q '"state": "running"' killed/summary.json || fail "the run ended before it was killed: $(head -3 killed/summary.json)"
kept=$(choices choices)
[ "$kept" -gt 0 ] || fail "the choices of a killed run are lost: $(ls choices)"

few=(train.steps=$(($(sed -n 's/^ "steps": \([0-9]*\),$/\1/p' killed/summary.json) + 20)))
LOCKSTEP_LOG=debug run 0 train "${few[@]}" --resume=killed --quiet
n=$((n + 2))
grep -q 'tune: ' "$work/err" && fail "the resumed run times again: $(grep 'tune: ' "$work/err" | head -3)"
run 0 train "${many[@]}" "${few[@]}" --run-dir whole
[ "$(hash killed)" = "$(hash whole)" ] || fail "killed and resumed $(hash killed), never killed $(hash whole)"

# Two networks at once, in a folder of their own; each is then known.
export LOCKSTEP_CACHE=$work/both
for net in mnist mnist-keras; do
    "$LOCKSTEP" train $net "${common[@]}" train.steps=3 train.checkpoint_every=none --run-dir "both-$net" >"$net.out" 2>&1 &
    pids+=($!)
done
for k in 0 1; do wait "${pids[k]}" || fail "run $k of two: $(cat ./*.out)"; done
pids=()
for net in mnist mnist-keras; do
    LOCKSTEP_LOG=debug run 0 train $net "${common[@]}" train.steps=3 train.checkpoint_every=none --run-dir "again-$net"
    n=$((n + 2))
    grep -q 'tune: ' "$work/err" && fail "$net is timed again: $(grep 'tune: ' "$work/err" | head -3)"
    [ "$(hash "again-$net")" = "$(hash "both-$net")" ] || fail "$net: $(hash "both-$net"), then $(hash "again-$net")"
done

[ "$failures" -eq 0 ] && echo "choices_killed: $n checks, all as expected"
exit $((failures > 0))
