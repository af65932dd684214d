#!/usr/bin/env bash
# What people have is kept: the best weights whatever the periods, checkpoints that are exported, runs whose terminal goes away,
# runs that go on; and a run is called by the same names everywhere.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
small=(data.kind=synthetic data.train_range=0:320 data.test_range=320:400 batch.per_rank=32)

# The best validation is at a step where no checkpoint is due, and its weights are there all the same.
# (The largest loss counts as the best here: that is the first.)
run 0 train mnist "${small[@]}" train.epochs=3 train.checkpoint_every=7st train.best_metric=val/loss train.best_mode=max -n 2 \
    --run-dir best --json
holds 'o["metrics"]["test_weights"] == "best"' 'o["metrics"]["test_step"] == o["metrics"]["best"]["step"] == 5'
run 0 ckpt verify best/checkpoints/best

# An export never takes the place of a file, least of all of the checkpoint's own.
run 2 ckpt export best best/checkpoints/last/model.safetensors
says err 'is there already'
run 0 ckpt verify best

# What is no checkpoint is not called a damaged one; a checkpoint that has lost a file is.
run 0 ckpt export best weights.safetensors
for action in show verify export; do
    run 2 ckpt $action best/checkpoints
    says err 'best/checkpoints is no checkpoint: name a run or a step-... folder'
    run 2 ckpt $action weights.safetensors
    says err 'weights.safetensors is a file, and a checkpoint is a folder'
    says err '`lockstep ckpt import` makes one of a safetensors file'
done
for folder in best best/checkpoints best/checkpoints/last; do
    run 2 ckpt import $folder imported
    says err "import $folder: is a folder; import makes a checkpoint of a safetensors file"
done
run 2 ckpt import absent.safetensors imported
says err 'import absent.safetensors: there is no such file'
[ ! -e imported ] || fail "something was imported"
cp -rL best/checkpoints/last step-00000007
cp -r step-00000007 renamed
rm step-00000007/manifest.json renamed/manifest.json
for folder in step-00000007 step-00000007/ renamed; do
    run 3 ckpt verify $folder
    says err 'manifest.json: cannot be opened'
done
rm -r step-00000007 renamed
run 0 ckpt export best whole.safetensors

# A run goes on in its directory, with its own weights.
run 2 train --resume best --run-dir elsewhere
says err 'names another'
[ ! -e elsewhere ] || fail "a refused command made a directory"
run 2 train --resume best train.init=whole.safetensors train.epochs=4
says err 'train.init'

# Killed before its first checkpoint, on two ranks, it begins anew with given weights on all of them, or none would go on.
"$LOCKSTEP" train mnist "${small[@]}" train.steps=100000000 train.checkpoint_every=none train.validate_every=none \
    train.report_every=1st train.init=whole.safetensors -n 2 --run-dir early --quiet >"$work/out" 2>"$work/err" &
pids+=($!)
reached early 3 $!
kill -KILL $!
wait $! 2>/dev/null
until "$LOCKSTEP" runs show early 2>/dev/null | grep -q killed; do breathe; done
run 0 train --resume early seed=5 train.steps=3 train.validate_every=none -n 2 --quiet
run 0 runs show early
says out completed

# The terminal goes away: the same as Ctrl-C; under nohup nothing happens.  (The tests themselves may run under nohup.)
env --default-signal=HUP "$LOCKSTEP" train mnist "${small[@]}" train.steps=100000000 train.validate_every=none train.report_every=1st -n 2 \
    --run-dir gone --quiet >"$work/out" 2>"$work/err" &
pids+=($!)
reached gone 3 $!
kill -HUP $!
wait $!
[ $? -eq 75 ] || fail "SIGHUP did not end the run with a checkpoint: $(cat "$work/err")"
run 0 ckpt verify gone
nohup "$LOCKSTEP" train mnist "${small[@]}" train.steps=100000000 train.validate_every=none train.report_every=1st -n 2 \
    --run-dir nohup --quiet >"$work/out" 2>"$work/err" &
pids+=($!)
reached nohup 3 $!
kill -HUP $!
reached nohup 40 $!
kill -0 $! 2>/dev/null || fail "SIGHUP ended a run under nohup"
kill -TERM $!
wait $!
[ $? -eq 75 ] || fail "SIGTERM after an ignored SIGHUP: $(cat "$work/err")"

# Names of runs are those of `lockstep runs`.
run 0 train mnist "${small[@]}" train.epochs=1 --quiet
run 0 eval last --json
run 0 infer last --json
run 0 report last --json
run 0 train --resume last --json

echo "$n checks"
[ "$failures" -eq 0 ]
