#!/usr/bin/env bash
# Gradients that are not finite on one rank: all ranks leave the same updates out, the loss scale follows GradScaler's
# rules, schedules wait, and train.on_nonfinite says what else happens.  More ranks and devices: test_overflow_slow.sh.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
needs_python
common=(data.kind=synthetic data.train_range=0:96 data.test_range=96:110 batch.global=24 train.report_every=1st
    train.validate_every=none optimizer.momentum=0.9 lr.schedule=linear optimizer.lr=0.01 lr.final=0 --quiet)
half=(precision=fp16 fp16.initial_scale=1024 fp16.growth_interval=4 train.steps=16)

# scaled RUN STEPS: the scale and the rate of every step are right, and so is the count
scaled() {
    n=$((n + 1))
    python3 "$here/grad_scaler.py" check "$1/metrics.jsonl" 1024 4 "$2" 0.01 16 || fail "$1: other scales or rates"
    grep -q "\"skipped_steps\": $(tr -cd , <<<"$2," | wc -c)" "$1/summary.json" || fail "$1: $(grep skipped "$1/summary.json")"
}

# near RUN RUN: the losses of all steps are those of the other run, as far as 16 bits can tell
near() {
    n=$((n + 1))
    paste <(losses "$1") <(losses "$2") | awk '{ d = $1 - $2; if (NF != 2 || d > 0.01 || d < -0.01) bad = 1 } END { exit bad || NR != 16 }' ||
        fail "$1 and $2 have different losses: $(paste <(losses "$1") <(losses "$2"))"
}

# --- fp16 ---------------------------------------------------------------------------------------------
export LOCKSTEP_OVERFLOW=3@0,4@0,9@0
run 0 train mnist "${common[@]}" "${half[@]}" --run-dir one
scaled one 3,4,9
grep -q 'step 3: the gradient of "conv1.weight" is not finite: the update is left out, and the loss scale 1024 halved' one/logs/rank-00000.log ||
    fail "the log does not say what happened: $(cat one/logs/rank-00000.log)"
export LOCKSTEP_OVERFLOW=3@1,4@0,9@1
run 0 train mnist "${common[@]}" "${half[@]}" -n 2 --run-dir two
scaled two 3,4,9
near one two
grep -q 'step 3: the gradient of "conv1.weight" is not finite on rank 1 of 2' two/logs/rank-00000.log ||
    fail "the rank is not named: $(cat two/logs/rank-00000.log)"

# The same bits when it is stopped between, after the scale has changed.
run 75 train mnist "${common[@]}" "${half[@]}" train.pause_after=6st -n 2 --run-dir parts
run 0 train mnist "${common[@]}" train.pause_after=none -n 2 --resume=parts
scaled parts 3,4,9
[ "$(hash parts)" = "$(hash two)" ] || fail "stopped and continued: $(hash parts), not $(hash two)"
# A checkpoint of fp16 goes on in fp32, and that one in fp16 again.
run 0 train mnist "${common[@]}" precision=fp32 train.steps=18 -n 2 --resume=parts
run 0 ckpt show parts
grep -q loss_scale "$work/out" && fail "a checkpoint of fp32 has a loss scale"
run 0 train mnist "${common[@]}" precision=fp16 train.steps=20 --resume=parts -n 2
run 0 ckpt show parts
for name in loss_scale.scale loss_scale.good updates.skipped; do says out "$name"; done
grep -q '"skipped_steps": 3' parts/summary.json || fail "skipped steps are forgotten: $(grep skipped parts/summary.json)"

# A fixed scale does not change; an overflow is then for train.on_nonfinite.
export LOCKSTEP_OVERFLOW=5@0
steady=(precision=fp16 fp16.loss_scale=256 train.steps=16)
run 1 train mnist "${common[@]}" "${steady[@]}" --run-dir fixed
says err 'step 5: the gradient of "conv1.weight" is not finite at learning rate'
run 0 train mnist "${common[@]}" "${steady[@]}" train.on_nonfinite=skip --run-dir fixed-skip
[ "$(grep -c '"loss_scale": 256' fixed-skip/metrics.jsonl)" -eq 16 ] || fail "a fixed scale changed"
# With the least scale there is nothing to halve: it is no overflow.
LOCKSTEP_OVERFLOW=3@0 run 1 train mnist "${common[@]}" "${half[@]}" fp16.initial_scale=1 --run-dir least
says err 'step 3: the gradient of "conv1.weight" is not finite'

# A rank without samples (the second update has one) computes something in their place, which is nobody's gradient: whatever it is,
# no update is left out.
LOCKSTEP_OVERFLOW=2@1 run 0 train mnist "${common[@]}" precision=fp16 fp16.initial_scale=1024 data.train_range=0:17 batch.global=16 \
    parallel.accumulate=2 train.steps=2 -n 2 parallel.strategy=fsdp --run-dir none-added
grep -q '"skipped_steps": 0' none-added/summary.json || fail "added up: $(grep skipped none-added/summary.json)"

# --- fp32 ---------------------------------------------------------------------------------------------
export LOCKSTEP_OVERFLOW=3@1,4@1,8@0
plain=("${common[@]}" train.steps=10 -n 2)
run 1 train mnist "${plain[@]}" train.check_gradients=true --run-dir stop
says err 'step 3: the gradient of "conv1.weight" is not finite on rank 1 of 2 at learning rate'
says err 'there is no checkpoint yet'
says err 'train.on_nonfinite=skip leaves such updates out'
# Nobody has looked at gradients: the step after sees the loss, and what has become of the variables.
run 1 train mnist "${plain[@]}" --run-dir stop-late
says err 'step 4: loss is not a number'
says err ' are no longer finite, "conv1.weight" first'
grep -q '"state": "failed"' stop/summary.json || fail "the summary does not say that it failed"
run 0 train mnist "${plain[@]}" train.on_nonfinite=skip --run-dir skip
says err 'warning: step 3: the gradient of "conv1.weight" is not finite on rank 1 of 2'
says err 'warning: step 8: the gradient of "conv1.weight" is not finite on rank 0 of 2'
[ "$(grep -c 'is left out' "$work/err")" -eq 2 ] || fail "not one warning for each run of steps: $(cat "$work/err")"
grep -q '"skipped_steps": 3' skip/summary.json || fail "$(grep skipped skip/summary.json)"
python3 - skip/metrics.jsonl <<'PY' || fail "an epoch's mean is not finite, or the rate did not wait"
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert all(r.get("train/loss_epoch", 0) is not None for r in rows)
lr = {r["step"]: r["lr"] for r in rows if "lr" in r}
assert lr[3] == lr[4] == lr[5] > lr[6] > lr[7] > lr[8] == lr[9], lr
PY
LOCKSTEP_OVERFLOW=3@0 run 0 train mnist "${common[@]}" train.steps=10 train.on_nonfinite=warn train.check_gradients=true --run-dir warn
says err 'warning: step 3: the gradient of "conv1.weight" is not finite at learning rate'
says err 'training goes on all the same'
# One run of steps, one warning; one for each checkpoint that is not written.  What is set already is no advice.
[ "$(grep 'warning: ' "$work/err" | grep -vc 'no checkpoint is written')" -eq 1 ] || fail "not one warning: $(cat "$work/err")"
[ -z "$(grep 'warning: ' "$work/err" | sort | uniq -d)" ] || fail "said twice: $(cat "$work/err")"
! grep -q 'check_gradients=true names' "$work/err" || fail "advises what is set: $(cat "$work/err")"
# What the injection is made by is no part of a batch.
LOCKSTEP_OVERFLOW=3@0 run 1 train mnist "${common[@]}" train.steps=10 --run-dir named
! grep -q 'not finite in "loss_scale"' "$work/err" || fail "blames a batch: $(cat "$work/err")"
# On a rank that has no samples in that step nothing can overflow.
LOCKSTEP_OVERFLOW=2@1 run 0 train mnist -n 2 --threads 1 data.kind=synthetic data.train_range=0:9 data.test_range=64:72 train.epochs=1 \
    batch.per_rank=4 train.on_nonfinite=skip train.check_gradients=true --run-dir nothing
# Bits of a run without trouble are those of a run that nobody watches.
unset LOCKSTEP_OVERFLOW
run 0 train mnist "${plain[@]}" --run-dir unwatched
run 0 train mnist "${plain[@]}" train.on_nonfinite=skip --run-dir watched
[ "$(hash watched)" = "$(hash unwatched)" ] || fail "watching changes weights: $(hash watched), not $(hash unwatched)"

# --- the list itself ----------------------------------------------------------------------------------
LOCKSTEP_OVERFLOW=3 run 2 train mnist "${plain[@]}" --run-dir wrong
says err 'LOCKSTEP_OVERFLOW=3: at "3" is no STEP@RANK'

[ $failures -eq 0 ] && echo "test_overflow: $n checks passed"
exit $((failures > 0))
