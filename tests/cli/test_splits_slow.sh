#!/usr/bin/env bash
# Validation samples apart from those of the test, and which weights the test is with.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
needs_python
enter_work
common=(data.kind=synthetic data.train_range=0:160 data.test_range=160:200 batch.per_rank=16 optimizer.lr=0.05 --quiet)
# metrics RUN EXPRESSION...: over m, the metrics of its summary
metrics() {
    local run=$1
    shift
    n=$((n + $#))
    python3 - "$run" "$@" <<'P' || fail "$run: $*"
import json, sys
m = json.load(open(sys.argv[1] + "/summary.json"))["metrics"]
wrong = [e for e in sys.argv[2:] if not eval(e)]
sys.exit(f"not true: {wrong} of {m}" if wrong else 0)
P
}

# Held out of the training samples: the same ones on any number of ranks; every sample is in one set.
run 0 train mnist "${common[@]}" train.epochs=2 data.val_fraction=0.25 --run-dir held
metrics held 'm["test_samples"] == 40' 'm["last"]["loss"] != m["test"]["loss"]'
run 0 infer held --split val --out val.csv --json
is samples 40 split val
run 0 infer held --split train --out train.csv --json
is samples 120
run 0 infer held --split test --json
is samples 40
run 0 infer held --split val --out val2.csv -n 2 --json
is samples 40
cut -d, -f1-3 val.csv >a && cut -d, -f1-3 val2.csv >b
cmp -s a b || fail "two ranks validate other samples than one"
run 0 infer held --split val --out other.csv data.split_seed=2 --json
cmp -s <(cut -d, -f2 val.csv) <(cut -d, -f2 other.csv) && fail "data.split_seed holds out the same samples"
# Together they are the training samples: as many of every label.
run 0 infer held --split train --out all.csv data.val_fraction=0 --json
cmp -s <(cut -d, -f2 val.csv train.csv | sort) <( (cut -d, -f2 all.csv && echo label) | sort) ||
    fail "what is held out and what is left are not the training samples"

# A range of the training samples' file that is not trained with.
run 0 train mnist "${common[@]}" train.epochs=1 data.train_range=0:100 data.val_range=100:160 --run-dir range
run 0 infer range --split val --json
is samples 60
run 2 train mnist "${common[@]}" data.val_range=100:170 --run-dir odd
says err 'data.val_range=100:170 would be trained with as well'
run 2 train mnist "${common[@]}" data.val_range=200:220 data.val_fraction=0.1 --run-dir odd
says err 'set one of the two'
run 2 train mnist "${common[@]}" data.val_fraction=0.001 --run-dir odd
says err 'leaves one part empty'
run 2 infer range data.val_range= --split val
says err 'no validation samples of its own'
[ ! -e odd ] || fail "a run that was refused has a directory"

# Files and folders of their own.
run 0 data make kind=npy path=npy train=64 test=32 shape=1x28x28
cp npy/test-images.npy npy/more-images.npy && cp npy/test-labels.npy npy/more-labels.npy
run 0 train mnist data.kind=npy data.path=npy data.val_images=more-images.npy data.val_labels=more-labels.npy data.test_range=0:8 \
    batch.per_rank=16 --quiet --run-dir files
metrics files 'm["test_samples"] == 8'
run 0 infer files --split val --json
is samples 32

# Without any, the test samples are validated, as ever.
run 0 train mnist "${common[@]}" train.epochs=1 --run-dir plain
metrics plain 'm["last"] == m["test"]' 'm["test_weights"] == "best"' 'm["test_step"] == 10'

# The test is with the best weights, here (the largest loss is called the best) those of the first epoch; what the run leaves are the last.
for how in "" "-n 2 batch.per_rank=8" "-n 2 batch.per_rank=8 parallel.share=always" "reproducible=true"; do
    rm -rf best last long
    # shellcheck disable=SC2086
    run 0 train mnist "${common[@]}" train.epochs=3 data.val_fraction=0.2 train.best_metric=val/loss train.best_mode=max $how --run-dir best
    # shellcheck disable=SC2086
    run 0 train mnist "${common[@]}" train.epochs=3 data.val_fraction=0.2 train.best_metric=val/loss train.best_mode=max train.test_weights=last $how --run-dir last
    metrics best 'm["test_weights"] == "best"' 'm["test_step"] == m["best"]["step"]' 'm["test_step"] < 24'
    metrics last 'm["test_weights"] == "last"' 'm["test_step"] == 24'
    [ "$(hash best)" = "$(hash last)" ] || fail "$how: the test changes the weights that the run leaves"
    cmp -s best/checkpoints/last/model.safetensors last/checkpoints/last/model.safetensors ||
        fail "$how: the test changes the last checkpoint"
    run 0 eval best --json
    metrics best "abs(m['test']['loss'] - $(field loss)) < 1e-5" 'm["test"]["loss"] > m["last"]["loss"]'
    run 0 eval last/checkpoints/last --json
    metrics last "abs(m['test']['loss'] - $(field loss)) < 1e-5"
done
# It goes on as if there had been no test.
run 0 train mnist "${common[@]}" train.epochs=5 data.val_fraction=0.2 --run-dir long
run 0 train mnist "${common[@]}" train.epochs=3 data.val_fraction=0.2 train.best_metric=val/loss train.best_mode=max --run-dir short
run 0 train mnist "${common[@]}" train.epochs=5 data.val_fraction=0.2 train.best_metric=val/loss train.best_mode=max --resume=short
[ "$(hash long)" = "$(hash short)" ] || fail "a run that was tested with its best weights goes on otherwise"

# A best checkpoint that cannot be read costs a warning, not the result of the training.
damaged=(train.epochs=3 data.val_fraction=0.2 train.best_metric=val/loss train.best_mode=max)
run 75 train mnist "${common[@]}" "${damaged[@]}" train.pause_after=2ep --run-dir damaged
best=damaged/checkpoints/best/model.safetensors
[ "$(readlink damaged/checkpoints/best)" != "$(readlink damaged/checkpoints/last)" ] || fail "the best weights are the last: nothing is tested"
printf '\x55' | dd of=$best bs=1 seek=$((8 + $(od -An -t u8 -N8 $best) + 6)) conv=notrunc status=none
run 0 train mnist "${common[@]}" "${damaged[@]}" --resume=damaged
says err 'the test is with the last weights, not the best'
metrics damaged 'm["test_weights"] == "last"' 'm["test_step"] == 24'

[ $failures -eq 0 ] && echo "test_splits: $n checks passed"
exit $((failures > 0))
