#!/bin/bash
# What a command prints must arrive, or the command has failed: every command with a full disk behind standard output, and with a
# closed one, says so on standard error and ends with exit code 1.  A training run is complete all the same.
. "$(dirname "$0")/cli_lib.sh"
[ -c /dev/full ] || { echo "skipped: there is no /dev/full"; exit 77; }
small=(mnist data.kind=synthetic batch.per_rank=32 train.steps=3)

# lost WORD...: the command whose standard output is full
lost() {
    local got
    n=$((n + 1))
    "$LOCKSTEP" "$@" >/dev/full 2>"$work/err"
    got=$?
    [ "$got" -eq 1 ] || fail "lockstep $* >/dev/full: exit code $got, not 1: $(cat "$work/err")"
    [ "$(grep -c 'standard output: No space left on device' "$work/err")" -eq 1 ] ||
        fail "lockstep $* >/dev/full does not say once why: $(cat "$work/err")"
}

run 0 train "${small[@]}" --run-dir "$work/run" --threads 1 --quiet
checkpoint=$work/run/checkpoints/last

# Every command of the table, with and without --json where it has both.
declare -A tried
try() {
    tried[$1]=yes
    lost "$@"
}
lost help
lost --version
for command in $("$LOCKSTEP" help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do lost "$command" --help; done
lost train --help settings
try info
try info --json
try info --cflags
try plan mnist
try plan mnist --json
try plan mnist --settings
try train "${small[@]}" --dry-run
try eval "$work/run" --threads 1
try eval "$work/run" --threads 1 --json
try data info kind=synthetic
try data info kind=synthetic --json
try ckpt show "$checkpoint"
try ckpt show "$checkpoint" --json
try ckpt verify "$checkpoint"
try report "$work/run" --out "$work/report"
try bench mnist --threads 1 --steps 1
try bench mnist --threads 1 --steps 1 --json
try bench mnist --threads 1 --steps 1 --format mlperf
try submit mnist --nodes 1 --ranks-per-node 1 --scheduler pbs
try submit mnist --nodes 1 --ranks-per-node 1 --scheduler pbs --json
try scale mnist --ranks 1 --mode weak --repeats 1 --steps 1 --dir "$work/study" --json
try scale mnist --ranks 1 --mode weak --repeats 1 --steps 1 --dir "$work/study"
try new mine --dir "$work/mine"
try infer "$work/run" --threads 1
try infer "$work/run" --threads 1 --json
try runs list --dir "$work"
try runs list --dir "$work" --json
try runs show "$work/run"
try secret new
for form in "" --json --csv; do try predict mnist --machine edison --network edison --ranks 1,2 $form; done
try predict --list

# A run is not lost with its words: all steps, all files.
for ranks in 1 2; do
    try train "${small[@]}" -n "$ranks" --threads 1 --run-dir "$work/full-$ranks" --json
    grep -q '"state": "completed"' "$work/full-$ranks/summary.json" || fail "the run of $ranks ranks is not completed"
    [ -e "$work/full-$ranks/checkpoints/last/manifest.json" ] || fail "the run of $ranks ranks has no checkpoint"
    ! grep -q "failed with exit code" "$work/err" || fail "a rank that has done its work is called failed"
done

# A descriptor that is closed: nothing is printed into the files of the run.
n=$((n + 1))
"$LOCKSTEP" train "${small[@]}" --threads 1 --run-dir "$work/closed" --json >&- 2>"$work/err"
[ $? -eq 1 ] || fail "a closed standard output: exit code is not 1"
grep -q "standard output: Bad file descriptor" "$work/err" || fail "a closed standard output: $(cat "$work/err")"
! grep -rlq '"event"' "$work/closed" || fail "a file of the run holds what was to be printed: $(grep -rl '"event"' "$work/closed")"

# None is forgotten.
for command in $("$LOCKSTEP" help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
    [ -n "${tried[$command]}" ] || fail "\"$command\" is not tried here"
done

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
