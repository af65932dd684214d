#!/usr/bin/env bash
# `lockstep train --resume`: the run's own settings hold, changes are said and kept, a complete run stays as it is; and what
# an early stop and the best metric go by.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
data=(data.kind=synthetic data.train_range=0:160 data.test_range=160:200)

# lr RUN: the last learning rate that was reported
lr() {
    grep -o '"lr": [0-9.e-]*' "$1/metrics.jsonl" | tail -1 | cut -d' ' -f2
}
# setting RUN KEY: a line of its config.yaml
setting() {
    grep -m1 "^ *$2: *[^ ]" "$1/config.yaml" | sed 's/.*: *//'
}

# The run's learning rate stays, whether or not the experiment is named, and so does everything else that was given.
run 75 train mnist "${data[@]}" batch.per_rank=16 optimizer.lr=0.037 train.report_every=1st train.epochs=4 train.pause_after=1ep \
    --run-dir own --quiet
cp -r own named
cp -r own given
cp own/config.yaml first.yaml
run 0 train --resume own
says out 'changed       train.pause_after: 1ep -> none'
[ "$(lr own)" = 0.037 ] || fail "resumed by its folder alone, the rate is $(lr own)"
[ "$(setting own lr)" = 0.037 ] || fail "config.yaml has the rate $(setting own lr)"
cmp -s own/config.1.yaml first.yaml || fail "the first config.yaml was not kept"
run 0 train mnist --resume=named --quiet
[ "$(lr named)" = 0.037 ] || fail "resumed with its experiment named, the rate is $(lr named)"
says err "the run's own settings hold, not those of mnist"
says err 'optimizer.lr=0.01 (the run: 0.037)'
run 0 train mnist "${data[@]}" batch.per_rank=16 --resume=given --quiet
[ "$(lr given)" = 0.037 ] || fail "resumed with its experiment and data named, the rate is $(lr given)"
[ "$(setting given lr)" = 0.037 ] || fail "config.yaml then has the rate $(setting given lr)"
[ "$(hash own)" = "$(hash given)" ] || fail "with the data named, too, $(hash given), without $(hash own)"
[ "$(hash own)" = "$(hash named)" ] || fail "with the experiment named $(hash named), without $(hash own)"

# A complete run says so, stays as it is, and goes on when it is lengthened; each change is printed.
cp -r own before
run 0 train --resume own
says out 'nothing to do: own is complete, after 40 steps and 4 epochs'
says out 'lockstep train --resume own train.epochs=8'
cmp -s own/summary.json before/summary.json && cmp -s own/metrics.jsonl before/metrics.jsonl &&
    [ ! -e own/config.2.yaml ] || fail "a complete run was changed"
run 0 train --resume=own --json
is event summary state completed steps 40
run 0 train --resume own train.epochs=5 optimizer.lr=0.02 -n 2
says out 'changed       ranks: 1 -> 2'
says out 'changed       train.epochs: 4 -> 5'
says out 'changed       optimizer.lr: 0.037 -> 0.02'
says out 'steps         in settings are of 16 samples, as when the run began'
says err 'epoch 5/5'
[ "$(lr own)" = 0.02 ] || fail "a rate that was given is $(lr own)"
run 0 train --resume own train.steps=70 --json
is epochs 7 state completed # 60 steps of 16 samples are 6 epochs
grep -q '{"event":"changed","setting":"train.steps","before":"0","now":"70"}' "$work/out" || fail "no JSON about the change"
run 0 train --resume own train.epochs=8 --json # takes the place of train.steps
is epochs 8

# The newest run needs no name at all; its folder may follow as a word, anywhere; settings are no folder.
run 75 train mnist "${data[@]}" train.epochs=2 train.pause_after=1st --quiet
run 75 train --resume train.pause_after=1st --quiet
run 75 train mnist --resume "${data[@]}" train.pause_after=1st --quiet
name=$(cd runs && echo mnist-*)
run 75 train --resume "$name" train.epochs=2 train.pause_after=1st --quiet # as `lockstep runs` calls it
run 0 train train.epochs=1 --resume "runs/$name" --quiet
[ "$(echo runs/* | wc -w)" -eq 1 ] || fail "there are several runs now: $(ls runs)"

# What cannot be: the reason, exit code 2, nothing changed.
cp -r own before-refusals
run 2 train --resume own seed=2
says err 'seed cannot change from 1 to 2'
run 2 train --resume own data.train_range=0:150
says err 'data.train_range cannot change from 0:160 to 0:150'
run 2 train vit-tiny --resume own
says err 'the checkpoint is of model "mnist", not "vit-tiny"'
run 2 train --resume nowhere/at-all
says err 'nowhere/at-all is no run directory: config.yaml and summary.json are not there; `lockstep runs list` shows those that are'
run 2 train --resume nowhere
says err 'there is no run "nowhere" in runs/; `lockstep runs list` shows them'
run 2 train mnist --resume nowhere
says err 'nowhere is no run directory'
run 2 train --resume mnist-small
says err 'there is no run of "mnist-small" under runs/ to resume'
run 2 train --resume own optimizer.lrr=1
says err 'optimizer.lr'
diff -r own before-refusals >/dev/null || fail "a refused resume changed the run: $(diff -rq own before-refusals)"
mkdir empty
run 2 train --resume empty/
says err 'no run directory'

# An early stop: by a metric that is there, and it says why.
run 2 train mnist "${data[@]}" train.early_stop=2 train.best_metric=val/nosuch --run-dir nosuch
says err 'the validation of model "mnist" has val/loss, val/acc'
run 2 train mnist "${data[@]}" train.early_stop=2 train.validate_every=none --run-dir nosuch
says err 'train.early_stop goes by validations, and train.validate_every=none has none'
run 2 train mnist "${data[@]}" lr.schedule=plateau train.validate_every=none --run-dir nosuch
says err 'lr.schedule=plateau goes by validations, and train.validate_every=none has none'
[ ! -e nosuch ] || fail "a refused run left its folder"
run 0 train mnist "${data[@]}" train.early_stop=2 train.best_metric=val/loss optimizer.lr=0 train.epochs=9 --run-dir stuck
says err 'training ends early: no better val/loss in 2 validations'
says out 'ended early   no better val/loss in 2 validations'
grep -q '"ended_by": "early_stop"' stuck/summary.json || fail "the summary does not say why the run ended"
grep -q '"epochs": 3,' stuck/summary.json || fail "stopped elsewhere: $(grep epochs stuck/summary.json)"
run 0 train --resume stuck
says out 'lockstep train --resume stuck train.early_stop=0'
sed -i 's/"state": "completed"/"state": "killed"/' stuck/summary.json # before it could say that it was done
run 0 train --resume stuck --json
is epochs 3 ended_by early_stop state completed
run 0 train --resume stuck train.early_stop=0 train.epochs=4 --json
is epochs 4 ended_by end

# Of losses the smallest is best, of accuracies the largest, unless told otherwise.
run 0 train mnist "${data[@]}" optimizer.lr=0.05 train.best_metric=val/loss train.epochs=5 --run-dir best --quiet
if $have_json; then
    python3 - best <<'END' || fail "the best loss is not the smallest"
import json, sys
values = [json.loads(line).get("val/loss_epoch") for line in open(sys.argv[1] + "/metrics.jsonl")]
best = json.load(open(sys.argv[1] + "/summary.json"))["metrics"]["best"]["value"]
values = [v for v in values if v is not None]
sys.exit(not (abs(best - min(values)) < 1e-6 and min(values) < max(values)))
END
fi

# A run that was copied without its checkpoints is not begun anew in the place of what it was.
run 75 train linear data.kind=synthetic data.train_range=0:64 data.test_range=64:80 batch.per_rank=8 train.steps=6 train.pause_after=3st --quiet --run-dir lost
rm -rf lost/checkpoints/step-*
run 3 train --resume lost --quiet
says err 'lost/checkpoints/last: the checkpoint step-00000003 is gone; bring it back'
grep -q '"state": "paused"' lost/summary.json || fail "a run that cannot be resumed is no longer paused"

[ $failures -eq 0 ] && echo "test_resume_settings: $n checks passed"
exit $((failures > 0))
