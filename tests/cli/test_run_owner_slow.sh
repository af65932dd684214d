#!/usr/bin/env bash
# A run directory has one owner: used ones, empty names and those of a living run are refused with nothing changed; of two
# at once one wins; and a run that is ended without a word is known to be killed.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
small=(data.kind=synthetic data.train_range=0:200 data.test_range=200:240 batch.per_rank=16 train.validate_every=none)
endless=("${small[@]}" train.steps=100000000 train.report_every=1st)

# everything DIR: names, sizes and content of all files in it
everything() {
    find "$1" -printf '%p %y %s %T@\n' | sort
    find "$1" -type f -exec sha1sum {} + | sort
}

# unchanged DIR: as $before has it
unchanged() {
    n=$((n + 1))
    [ "$(everything "$1")" = "$before" ] || fail "$1 was changed: $(diff <(echo "$before") <(everything "$1"))"
}

# state RUN STATE: by `lockstep report`, which tells the true one
state() {
    run 0 report "$1" --out "$work/page" --json
    says out "\"state\":\"$2\""
}

# start NAME OPTION...: an endless run in the background, in $pid, which has reported
start() {
    local name=$1
    shift
    "$LOCKSTEP" train mnist "${endless[@]}" --run-dir "$name" --quiet "$@" >"$work/out" 2>"$work/err" &
    pid=$!
    pids+=("$pid")
    reached "$name" 5 "$pid"
}

# --- used directories ------------------------------------------------------------------------------------
run 0 train mnist "${small[@]}" train.steps=3 --run-dir used --quiet
before=$(everything used)
run 2 train mnist "${small[@]}" train.steps=5 --run-dir used
says err '--resume=used'
says err 'runs rm used'
unchanged used
run 2 train mnist "${small[@]}" train.steps=5 --run-dir used -n 2
unchanged used
mkdir foreign
echo mine >foreign/notes
before=$(everything foreign)
run 2 train mnist "${small[@]}" train.steps=5 --run-dir foreign
says err 'notes'
unchanged foreign
run 2 train mnist "${small[@]}" train.steps=5 --run-dir ''
says err 'empty name'
mkdir empty
run 0 train mnist "${small[@]}" train.steps=3 --run-dir empty --quiet
# A command that is refused later has made nothing, or takes it back.
run 2 train mnist "${small[@]}" batch.per_rank=500 --run-dir deep/er/run
[ ! -e deep ] || fail "a refused command left $(find deep)"
run 2 train mnist "${small[@]}" batch.per_rank=500 -n 2
[ ! -e runs ] || fail "a refused command left $(find runs)"
before=$(everything used)
run 2 train mnist "${small[@]}" batch.per_rank=500 --resume=used
unchanged used
: >file
run 2 train mnist "${small[@]}" train.steps=1 --run-dir file/run
long=$(printf 'x%.0s' {1..300})
run 2 train mnist "${small[@]}" train.steps=1 --run-dir "$long"
run 2 train mnist "${small[@]}" train.steps=1 --run-dir "$(printf 'long/%.0s' {1..1000})"
[ ! -e long ] || fail "a path that is too long left a part of it"
run 2 train mnist "${small[@]}" train.steps=1 --run-dir /proc/nowhere/run
says err '/proc/nowhere'

# --- a living owner; a dead one -------------------------------------------------------------------------
start alive
run 2 train mnist "${small[@]}" train.steps=5 --run-dir alive
says err "process $pid on host"
run 2 train mnist "${small[@]}" train.steps=5 --resume=alive
says err "process $pid on host"
kill -0 $pid 2>/dev/null || fail "the run did not survive the attempts to take it"
state alive running
kill -KILL $pid
wait $pid 2>/dev/null
grep -q '"state": "running"' alive/summary.json || fail "nobody could have written another state"
state alive killed
# Also from another folder, and it can be gone on with.
(cd / && "$LOCKSTEP" report "$work/alive" --out "$work/page2" --json) | grep -q '"state":"killed"' || fail "from / it is not killed"
run 0 train mnist "${small[@]}" train.steps=4 --resume=alive --quiet
state alive completed
grep -q '"epoch": 2' alive/owner.json || fail "the second opening has not the number 2: $(cat alive/owner.json)"

# The launcher is killed: its ranks go with it, and so does the lock.
start launched -n 2
ranks=$(pgrep -P $pid)
kill -KILL $pid
wait $pid 2>/dev/null
for p in $ranks; do while kill -0 "$p" 2>/dev/null; do breathe; done; done
state launched killed

# Rank 0 is killed: the launcher has the last word.
start lost -n 2
first=$(pgrep -P $pid | sort -n | head -1)
kill -KILL "$first"
wait $pid
[ $? -eq 4 ] || fail "a lost rank 0: not exit code 4: $(cat "$work/err")"
grep -q '"state": "failed"' lost/summary.json || fail "the launcher did not write the state: $(head -3 lost/summary.json)"
grep -q '"error": "rank 0 .*killed by signal 9' lost/summary.json || fail "the summary does not say why: $(grep error lost/summary.json)"

# A restart before the first checkpoint begins anew, in the same directory and as the same owner.
"$LOCKSTEP" train mnist "${small[@]}" train.steps=2000 train.report_every=1st train.checkpoint_every=none max_restarts=1 -n 2 \
    --run-dir again --quiet >"$work/out" 2>"$work/err" &
pid=$!
pids+=("$pid")
reached again 5 "$pid"
kill -KILL "$(pgrep -P $pid | sort -n | head -1)"
wait $pid
[ $? -eq 0 ] || fail "a restart before the first checkpoint: $(cat "$work/err")"
says err 'restart 1 of 1, from the beginning'
grep -q '"state": "completed"' again/summary.json || fail "after the restart: $(head -3 again/summary.json)"
grep -q "\"pid\": $pid," again/owner.json && grep -q '"epoch": 2,' again/owner.json || fail "not the same owner: $(cat again/owner.json)"
[ "$(grep -c '"train/loss_step"' again/metrics.jsonl)" -eq 2000 ] || fail "metrics of both attempts: $(wc -l <again/metrics.jsonl)"
# TensorBoard forgets the first attempt: the file that it reads last begins with a restart at step 0.
n=$((n + 1))
files=(again/events.out.tfevents.*)
[ ${#files[@]} -eq 2 ] || fail "not two event files: ${files[*]}"
"$LS_BUILD_DIR/tests/tools/events_tool" read "${files[1]}" >events
[ "$(sed -n 2p events)" = "restart 0 -" ] || fail "the second file begins otherwise: $(head -3 events)"
grep -q 'scalar 2000 train/loss_step' events || fail "the second file is not the second attempt's: $(tail -3 events)"

# --- a reader that leaves --------------------------------------------------------------------------------
{
    "$LOCKSTEP" train mnist "${small[@]}" train.steps=40 train.report_every=1st --run-dir piped --json 2>"$work/err"
    echo $? >code
} | head -1 >/dev/null
grep -q '"state": "completed"' piped/summary.json || fail "a closed pipe ended the run: $(head -3 piped/summary.json)"
[ "$(cat code)" -eq 1 ] || fail "a closed pipe: exit code $(cat code), not 1"
says err 'standard output'

# --- two at once -----------------------------------------------------------------------------------------
for k in 1 2 3; do
    for i in 1 2 3; do
        {
            "$LOCKSTEP" train mnist "${small[@]}" train.steps=60 --run-dir "both-$k" --quiet 2>"err.$i"
            echo $? >"code.$i"
        } &
        pids+=($!)
    done
    wait
    n=$((n + 1))
    [ "$(sort -n code.? | tr '\n' ' ')" = "0 2 2 " ] || fail "three at once end with $(cat code.?): $(cat err.?)"
    grep -q '"epoch": 1,' "both-$k/owner.json" || fail "not the first opening: $(cat "both-$k/owner.json")"
done

# --- the newest by content -------------------------------------------------------------------------------
mkdir runs
run 75 train mnist "${small[@]}" train.steps=20 train.pause_after=5st --run-dir runs/mnist-20990101-000000-ffff --quiet
run 75 train mnist "${small[@]}" train.steps=20 train.pause_after=5st --run-dir runs/a --quiet
touch -d 2001-01-01 runs/a runs/a/*
run 0 train mnist "${small[@]}" train.steps=20 --resume --quiet
grep -q '"state": "completed"' runs/a/summary.json || fail "--resume took another run than the newest"
grep -q '"state": "paused"' runs/mnist-20990101-000000-ffff/summary.json || fail "--resume took the run with the latest name"
rm -r runs
TZ=Asia/Tokyo "$LOCKSTEP" train mnist "${small[@]}" train.steps=1 --quiet || fail "a run of its own name"
name=$(ls runs)
stamp=${name#mnist-}
[ $(($(date -u +%s) - $(date -u -d "${stamp:0:8} ${stamp:9:2}:${stamp:11:2}:${stamp:13:2}" +%s))) -lt 600 ] || fail "$name is not in UTC"

[ "$failures" -eq 0 ] && echo "run owner: $n checks, all as expected"
exit $((failures > 0))
