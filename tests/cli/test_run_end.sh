#!/usr/bin/env bash
# How a run can end, and what it then leaves: completed, failed, killed; its log, its ledger, its tables.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
small=(data.kind=synthetic data.train_range=0:200 data.test_range=200:240 batch.per_rank=16)

# state RUN
state() {
    sed -n 's/^ "state": "\(.*\)",$/\1/p' "$1/summary.json"
}

# ends RUN STATE
ends() {
    n=$((n + 1))
    [ "$(state "$1")" = "$2" ] || fail "$1 is \"$(state "$1")\", not \"$2\""
}

# part RUN NAME: seconds of one part of the ledger, or wall_s
part() {
    sed -n "s/^ *\"$2\": \([0-9.e-]*\),\{0,1\}\$/\1/p" "$1/summary.json" | head -1
}

# true EXPRESSION: of awk
true_that() {
    n=$((n + 1))
    awk "BEGIN { exit !($1) }" || fail "not true: $1"
}

# timed COMMAND...: adds to `spent` the seconds that it takes
spent=0
timed() {
    local begun=$EPOCHREALTIME
    "$@"
    spent=$(awk "BEGIN { print $spent + $EPOCHREALTIME - $begun }")
}

# adds_up RUN SECONDS: what the ledger books is the time that the run's processes took, as clocks outside of the ledger see it: no
# more than SECONDS from their starts to their ends, no less than what metrics.jsonl says of the last training.  (That the parts make up
# wall_s says nothing: it is their sum.)  No part is negative, and the network was trained and validated.
adds_up() {
    local sum=0 p least
    for p in setup compute evaluate comm data checkpoint restart redone idle; do
        true_that "$(part "$1" $p) >= 0"
        sum="$sum + $(part "$1" $p)"
    done
    least=$(grep "\"train/" "$1/metrics.jsonl" | tail -n 1 | sed 's/.*"time_s": \([0-9.e-]*\).*/\1/')
    true_that "$sum < $2 && $sum > $least && $least > 0"
    true_that "$(part "$1" wall_s) - ($sum) < 1e-6 && $sum - $(part "$1" wall_s) < 1e-6"
    true_that "$(part "$1" compute) > 0 && $(part "$1" setup) > 0 && $(part "$1" compute) < $2"
}

# --- completed: tables at both ends, a log with times ---------------------------------------------
timed run 0 train mnist "${small[@]}" train.steps=30 --run-dir done
for part in "layer " "conv2              20x8x8         5,020" "total, per sample                21,840" "metric  validation" \
    "time " "wall " "samples       464" "central 68 %" "checkpoint    done/checkpoints/step-00000030" "weights " "run           done"; do
    says out "$part"
done
n=$((n + 1))
grep -q $'\033' "$work/out" "$work/err" && fail "colours or cursor movements without a terminal"
ends done completed
adds_up done "$spent"
true_that "$(part done evaluate) > 0"
grep -q '"best": {' done/summary.json || fail "the summary has no best metric"
log=done/logs/rank-00000.log
stamp='^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z '
n=$((n + 1))
[ "$(grep -cE "$stamp" $log)" -eq "$(wc -l <$log)" ] || fail "lines without a time in $log: $(grep -vE "$stamp" $log | head -3)"
grep -q 'step 26: loss' $log || fail "the log has no validation"
lines=$(wc -l <$log)

timed run 0 train mnist "${small[@]}" train.steps=40 --resume=done --quiet
[ -s "$work/out" ] && fail "--quiet printed $(head -1 "$work/out")"
[ "$(wc -l <$log)" -gt "$lines" ] || fail "the log of a resumed run did not grow"
head -1 $log | grep -q 'layer' || fail "the log of a resumed run lost its beginning"
adds_up done "$spent"
true_that "$(part done restart) > 0 && $(part done redone) == 0"

run 0 train mnist "${small[@]}" train.steps=2 --run-dir json --json
head -1 "$work/out" | grep -q '"event":"model","layers":\[{"name":"conv1","shape":\[16,10,24,24\],"parameters":260' ||
    fail "the first line is not the model: $(head -1 "$work/out")"

# Steps and little else: the ledger has little room to be wrong.
spent=0
timed run 0 train mnist "${small[@]}" train.steps=400 train.report_every=1st train.validate_every=none train.checkpoint_every=none --run-dir steps --quiet
adds_up steps "$spent"

# --- failed: a loss that is not finite --------------------------------------------------------------
run 1 train mnist "${small[@]}" train.steps=3000 optimizer.lr=1e5 --run-dir diverged
says err 'step 3: loss is not a number at learning rate 100000'
says err 'there is no checkpoint yet'
says err 'smaller optimizer.lr'
ends diverged failed
grep -q '"error": "step 3: loss' diverged/summary.json || fail "the summary does not say why"
grep -q 'error: step 3: loss is not a number' diverged/logs/rank-00000.log || fail "the log does not say why"
run 1 train mnist "${small[@]}" train.steps=3000 optimizer.lr=1e5 --run-dir diverged-json --json
tail -1 "$work/out" | grep -q '"state":"failed"' || fail "--json: the last line of a failed run is no summary"

# The last checkpoint stays, is whole and finite, and a smaller rate goes on from it.
spent=0
timed run 0 train mnist "${small[@]}" train.steps=20 --run-dir late --quiet
timed run 1 train mnist "${small[@]}" train.steps=100 optimizer.lr=1e5 --resume=late --quiet
says err 'the last checkpoint, late/checkpoints/step-00000020, stays'
ends late failed
run 0 ckpt verify late
timed run 0 train mnist "${small[@]}" train.steps=60 optimizer.lr=0.01 --resume=late --quiet
ends late completed
adds_up late "$spent"

run 0 train mnist "${small[@]}" train.steps=12 optimizer.lr=1e5 train.on_nonfinite=warn --run-dir warned --quiet
says err 'warning: step 3: loss is not a number'
[ "$(grep -c diverged "$work/err")" -eq 1 ] || fail "one divergence, several warnings: $(cat "$work/err")"
says err 'the variables are not finite, so no checkpoint is written'
[ ! -e warned/checkpoints/last ] || fail "a checkpoint of variables that are not finite was written"
ends warned completed

# --- killed: a second signal, at once ----------------------------------------------------------------
begun=$EPOCHREALTIME
"$LOCKSTEP" train mnist "${small[@]}" train.steps=100000000 train.report_every=1st train.checkpoint_every=5st \
    train.validate_every=none --run-dir killed --json >lines 2>"$work/err" &
pid=$!
until [ "$(grep -c '"event": "step"' lines 2>/dev/null)" -ge 20 ] || ! kill -0 $pid 2>/dev/null; do breathe; done
ends killed running
# Stopped, it cannot act on the first before the second is there, too.
kill -STOP $pid
kill -INT $pid
kill -TERM $pid
kill -CONT $pid
wait $pid
code=$?
n=$((n + 1))
[ $code -eq 143 ] || [ $code -eq 130 ] || fail "two signals: exit code $code"
ends killed killed
steps=$(sed -n 's/^ "steps": \([0-9]*\),$/\1/p' killed/summary.json)
run 0 train mnist "${small[@]}" train.steps=$((steps + 20)) train.validate_every=none train.checkpoint_every=none --resume=killed --quiet
ends killed completed
adds_up killed "$(awk "BEGIN { print $EPOCHREALTIME - $begun }")"
true_that "$(part killed restart) > 0"

[ "$failures" -eq 0 ] && echo "$n checks of how a run ends: all as expected"
exit $((failures > 0))
