#!/usr/bin/env bash
# A run that is paused anywhere, also by a request between the batches of one update, and continued in a new process ends
# with the same bits; and batches whose gradients are added up make the update of one large batch.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
# Short last batch and short last update in every epoch; dropout, momentum, a warm-up and a schedule are in play.
common=(data.kind=synthetic data.train_range=0:150 data.test_range=150:190 optimizer.momentum=0.9 lr.scale=linear
    lr.reference_batch=8 lr.warmup=5st lr.schedule=step lr.step_every=9st train.validate_every=none)

# Sanitizers look at every fourth of the pauses; whether the bits are the same does not depend on them.
every=1
if slow_build; then every=4; fi

# pauses NAME SAMPLES SETTING...: pauses after SAMPLES, twice as many, ... up to 20 times, each in a run of its own
pauses() {
    local name=$1 samples=$2 k
    shift 2
    run 0 train mnist "${common[@]}" "$@" --run-dir "$name" --quiet
    for k in $(seq 1 "$every" 20); do
        run 75 train mnist "${common[@]}" "$@" train.pause_after=$((k * samples))sa --run-dir "$name-$k" --quiet
        [ "$(hash "$name-$k")" != "$(hash "$name")" ] || fail "$name: the pause after $k batches came too late"
        run 0 train mnist "${common[@]}" "$@" --resume="$name-$k" --quiet
        [ "$(hash "$name-$k")" = "$(hash "$name")" ] ||
            fail "$name: after a pause at $((k * samples)) samples $(hash "$name-$k"), without $(hash "$name")"
    done
}

pauses steps 16 batch.per_rank=16 train.steps=24
pauses micro 8 batch.per_rank=8 parallel.accumulate=3 train.steps=9

# A checkpoint waits for the update: a pause that is due after the first of its batches comes with its last, and no gradients are kept.
run 75 train mnist "${common[@]}" batch.per_rank=8 parallel.accumulate=3 train.steps=9 train.pause_after=32sa --run-dir inside --quiet
run 0 ckpt show inside/checkpoints/last
grep -q accumulated "$work/out" && fail "a checkpoint holds gradients"
grep -q '"pending": 0' inside/checkpoints/last/manifest.json || fail "a checkpoint lies within an update"
grep -q '"steps": 2,' inside/summary.json || fail "paused elsewhere than after the update: $(grep '"steps"' inside/summary.json)"
# So another number of batches per update can take over.
run 0 train mnist "${common[@]}" batch.per_rank=8 train.steps=9 --resume=inside --quiet

# Three batches of eight are one of 24 to rounding: the losses of all steps, dropout included.
run 0 train mnist "${common[@]}" batch.per_rank=24 train.steps=21 train.report_every=1st --run-dir one --quiet
run 0 train mnist "${common[@]}" batch.per_rank=8 parallel.accumulate=3 train.steps=21 train.report_every=1st --run-dir three --quiet
same_losses one three 21
[ "$(losses one)" != "$(losses three)" ] || fail "one batch and three make the very same bits, which cannot be"

[ $failures -eq 0 ] && echo "test_resume: $n checks passed"
exit $((failures > 0))
