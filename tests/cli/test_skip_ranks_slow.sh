#!/usr/bin/env bash
# data.on_error=skip on several ranks: a damaged image in one rank's share leaves a smaller batch, not a smaller gradient: as many
# steps, the losses and the validations of one rank, whose batch is the same; and the limit is of all ranks together.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
needs_python
enter_work

# images NAME COUNT DAMAGED...: a set, in which these files are none
images() {
    local name=$1 count=$2 files i
    shift 2
    run 0 data make kind=images path="$name" shape=3x32x32 classes=2 train="$count" test=6
    mapfile -t files < <(find "$name/train" -type f | sort)
    for i in "$@"; do printf 'no image' >"${files[i]}"; done
}

# last RUN: steps, epochs and the validation
last() {
    python3 -c '
import json, sys
o = json.load(open(sys.argv[1] + "/summary.json"))
print(o["steps"], o["epochs"], o["state"], *("%s=%.3f" % x for x in sorted(o["metrics"]["last"].items())))' "$1"
}

# alike STEPS MODEL ARGUMENT...: on 2 and 3 ranks what one rank does
alike() {
    local steps=$1 ranks
    shift
    rm -rf on-*
    set -- "$@" data.kind=images data.on_error=skip train.report_every=1st reproducible=false optimizer.name=sgd optimizer.lr=0.0002
    for ranks in 1 2 3; do
        run 0 train "$@" -n $ranks --run-dir on-$ranks --quiet
        says err 'sample skipped'
        [ "$ranks" -gt 1 ] || continue
        same_losses on-1 on-$ranks "$steps"
        n=$((n + 1))
        [ "$(last on-1)" = "$(last on-$ranks)" ] || fail "$*: on $ranks ranks $(last on-$ranks), on one $(last on-1)"
    done
}

# Batches of 6; an epoch ends with one of 3.
images many 27 3 9
alike 15 linear data.path=many batch.global=6 train.epochs=3
# Updates of two batches, and statistics of batch norms over all ranks.
alike 6 linear data.path=many batch.global=12 parallel.accumulate=2 train.epochs=2
alike 4 resnet18-cifar data.path=many batch.global=6 train.steps=4 parallel.sync_batchnorm=true train.checkpoint_every=none

# An epoch ends with a batch of one sample.  Where it is a damaged one there is no update, on no rank: 4 times in 20 epochs.
images few 7 1 4
alike 56 linear data.path=few batch.global=3 train.epochs=20

# A device that works by itself takes no step ahead of what ranks ask one another: the bits of the reference.
for device in ref far; do
    run 0 train linear data.kind=images data.path=few batch.global=3 train.epochs=3 data.on_error=skip -n 2 --device $device \
        --run-dir bits-$device --quiet
done
[ "$(hash bits-ref)" = "$(hash bits-far)" ] || fail "far ends with $(hash bits-far), ref with $(hash bits-ref)"

# memory.limit holds for all batches that damaged samples leave: with little more than what the refusal says a run ends well.
images odd 48 0 1 2 3 4 9 12 13 17 25 31 33 40
tight=(linear data.kind=images data.path=odd data.on_error=skip batch.per_rank=8 train.epochs=6 -n 1 --quiet)
run 2 train "${tight[@]}" memory.limit=1KiB --run-dir tight
limit=$(sed -n 's/.*a rank would take \([0-9.]*\) \([KM]iB\).*/\1 \2/p' "$work/err" |
    awk '{ printf "%d", $1 * ($2 == "MiB" ? 1048576 : 1024) * 1.01 }')
run 0 train "${tight[@]}" memory.limit="${limit:-1}" --run-dir tight

# One damaged image for each of two ranks is more than one of both.
run 3 train linear data.kind=images data.path=many batch.global=26 train.epochs=1 data.on_error=skip data.max_skipped=1 seed=4 \
    -n 2 --run-dir too-many --quiet
says err '2 damaged samples of all ranks in epoch 0 are more than the 1 that data.max_skipped lets pass'

[ "$failures" -eq 0 ] && echo "skip_ranks: $n checks, all as expected"
exit $((failures > 0))
