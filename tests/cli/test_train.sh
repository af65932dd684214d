#!/usr/bin/env bash
# `lockstep train` and `eval` as a user meets them: files, messages, exit codes, a pause and a resume in new processes.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
small=(data.kind=synthetic data.train_range=0:200 data.test_range=200:240 batch.per_rank=16)

run 0 train mnist "${small[@]}" train.steps=30 --run-dir whole --quiet
for f in config.yaml summary.json metrics.jsonl checkpoints/last/manifest.json checkpoints/last/model.safetensors; do
    [ -e "whole/$f" ] || fail "the run has no $f"
done
ls whole/events.out.tfevents.* >/dev/null 2>&1 || fail "the run has no event file"
grep -q '"train/loss_epoch"' whole/metrics.jsonl || fail "metrics.jsonl has no train/loss_epoch"
grep -q '"val/acc_epoch"' whole/metrics.jsonl || fail "metrics.jsonl has no val/acc_epoch"
# A step has the same number wherever it is reported: 30 are done at the end.
[ "$(tail -n 1 whole/metrics.jsonl | sed 's/.*"step": \([0-9]*\).*/\1/')" = 30 ] ||
    fail "the last step of metrics.jsonl is not 30: $(tail -n 1 whole/metrics.jsonl)"

# A pause and a resume, each in a process of its own, end with the same weights.
run 0 train mnist "${small[@]}" train.steps=7 --run-dir parts --quiet
run 0 train mnist "${small[@]}" train.steps=19 --resume=parts --quiet
run 0 train mnist "${small[@]}" train.steps=30 --resume=parts --quiet
[ "$(hash parts)" = "$(hash whole)" ] || fail "three parts gave $(hash parts), the whole $(hash whole)"

# The resolved experiment alone makes the same run again.
run 0 train whole/config.yaml --run-dir again --quiet
[ "$(hash again)" = "$(hash whole)" ] || fail "config.yaml gave $(hash again), the run $(hash whole)"

# A signal: a checkpoint, exit code 75, and the rest later.  The run has far more steps than it can do meanwhile.
"$LOCKSTEP" train mnist "${small[@]}" train.steps=1000000 train.report_every=1st --run-dir paused --json >lines 2>"$work/err" &
pid=$!
while ! grep -q '"event": "step"' lines 2>/dev/null && kill -0 $pid 2>/dev/null; do breathe; done
kill -TERM $pid
wait $pid
[ $? -eq 75 ] || fail "SIGTERM: not exit code 75: $(cat err)"
grep -q '"state": "paused"' paused/summary.json || fail "a stopped run's summary does not say so"
steps=$(grep -o '"steps": [0-9]*' paused/summary.json | grep -o '[0-9]*')
run 0 train mnist "${small[@]}" train.steps=$((steps + 5)) --resume=paused --quiet

run 0 eval whole --json
says out '"samples":40'
run 0 eval whole/checkpoints/last
says out 'samples       40'
run 0 ckpt verify whole/checkpoints/last

# What cannot be: one message each, nothing created.
run 2 train mnist "${small[@]}" optimizer.lrr=1
says err 'did you mean "optimizer.lr"'
run 2 train mnist "${small[@]}" batch.per_rank=500
says err 'more than the training set has (200)'
run 3 train mnist data.kind=idx data.path=nowhere
says err 'nowhere'
run 2 train mnist "${small[@]}" --resume=nothing-here
says err 'no run directory'
run 2 train mnist "${small[@]}" lr.warmup=3min
says err 'cannot be given in minutes'
run 2 train mnist "${small[@]}" reproducible=true data.on_error=skip
says err "needs data.on_error=stop"
run 2 eval nothing-here
says err 'there is no such run, checkpoint or file of weights'

# A damaged checkpoint is passed over, and the run still ends with the same weights; without a whole one it cannot go on.
run 0 train mnist "${small[@]}" train.steps=40 --run-dir longer --quiet
printf 'x' | dd of=whole/checkpoints/last/model.safetensors bs=1 seek=2000 conv=notrunc 2>/dev/null
run 0 train mnist "${small[@]}" train.steps=40 --resume=whole --quiet
says err 'model.safetensors'
[ "$(hash whole)" = "$(hash longer)" ] || fail "after a damaged checkpoint: $(hash whole), not $(hash longer)"
for f in parts/checkpoints/step-*/model.safetensors; do
    printf 'x' | dd of="$f" bs=1 seek=2000 conv=notrunc 2>/dev/null
done
run 3 train mnist "${small[@]}" train.steps=40 --resume=parts
says err 'model.safetensors'
says err 'put a copy of one in its place, or remove that folder to begin from the beginning'
run 3 eval parts
says err 'put a copy of it in its place: there is no whole checkpoint beside it'
rm -r parts/checkpoints
run 2 eval parts
says err 'parts has no checkpoint yet; --resume goes on with the run'
run 0 train mnist "${small[@]}" train.steps=40 --resume=parts --quiet
[ "$(hash parts)" = "$(hash longer)" ] || fail "from the beginning: $(hash parts), not $(hash longer)"
[ ! -e runs ] || fail "a refused command left $(ls runs)"

[ "$failures" -eq 0 ] && echo "train: all as expected"
exit $((failures > 0))
