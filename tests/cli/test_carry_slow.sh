#!/usr/bin/env bash
# parallel.carry: updates that a step leaves to the next one.  Every way through a run ends with the bits of steps that make their own:
# other optimisers and rank counts, batches that are cut short, ranks without samples, validations, checkpoints and pictures in between,
# pauses and resumed runs, bf16, and models whose losses read updated weights, which leave nothing.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
. "$here/../tools/mpi_here.sh"
needs_python
enter_work

common=(data.kind=synthetic train.checkpoint_every=none --quiet)

# carried RANKS MODEL SETTING...: whether the plan has updates of the run before
carried() {
    local ranks=$1
    shift
    "$LOCKSTEP" plan "$@" data.kind=synthetic -n "$ranks" --json 2>/dev/null | python3 -c '
import json, sys
d = next(o for o in map(json.loads, sys.stdin) if o["event"] == "document")
nodes = [n for p in d["plans"] for n in p["nodes"]]
first = [n for n in nodes if n.get("carried")]
print(sum(n["op"] == "all_reduce_wait" for n in first) if first else 0)'
}

# same RANKS MODEL SETTING...: the weights do not know about it
same() {
    local ranks=$1
    shift
    rm -rf with without
    run 0 train "$@" "${common[@]}" -n "$ranks" --run-dir without parallel.carry=never
    run 0 train "$@" "${common[@]}" -n "$ranks" --run-dir with parallel.carry=always
    n=$((n + 1))
    [ "$(hash with)" = "$(hash without)" ] || fail "$* on $ranks ranks: $(hash with), without $(hash without)"
    n=$((n + 1))
    [ "$(losses with)" = "$(losses without)" ] || fail "$* on $ranks ranks: other losses"
}

small=(mnist batch.per_rank=8 data.train_range=0:100 data.test_range=100:120 train.report_every=1st)
n=$((n + 1))
[ "$(carried 2 "${small[@]}" parallel.carry=always parallel.bucket_mb=0.01)" -gt 1 ] || fail "mnist leaves no updates to the next step"

same 2 "${small[@]}" train.epochs=2
same 3 "${small[@]}" train.epochs=2 optimizer.name=adam optimizer.lr=0.001
same 2 "${small[@]}" train.epochs=2 optimizer.name=lamb optimizer.lr=0.001 parallel.bucket_mb=0.01
same 2 "${small[@]}" train.epochs=2 optimizer.momentum=0.9 lr.schedule=cosine lr.warmup=3st
same 2 "${small[@]}" train.steps=9 train.validate_every=3st train.checkpoint_every=2st parallel.verify_every=1st
same 2 "${small[@]}" train.steps=5 precision=bf16
same 4 "${small[@]}" train.epochs=2 data.train_range=0:66 # the last batch of an epoch leaves two ranks nothing
same 2 resnet18-cifar batch.per_rank=4 data.train_range=0:20 data.test_range=20:24 train.steps=4 parallel.clip_norm=0

# Two optimisers: both are left, for neither loss reads what the other has changed; a constant gradient is made before the sums come.
same 2 wgan-gp batch.per_rank=4 data.train_range=0:16 data.test_range=16:20 train.steps=4 parallel.bucket_mb=0.02
same 2 wgan-gp batch.per_rank=4 data.train_range=0:16 data.test_range=16:20 train.steps=4 precision=bf16

# What reads weights after their update, or must see all gradients before it, is as ever.
for other in 'parallel.clip_norm=1' 'precision=fp16' 'train.on_nonfinite=skip' 'parallel.accumulate=2' 'reproducible=true' \
    'parallel.strategy=zero1' 'parallel.overlap=false' 'data.on_error=skip' 'device=far'; do
    n=$((n + 1))
    [ "$(carried 2 "${small[@]}" --ranks-per-node 1 "$other")" -eq 0 ] || fail "$other: an update is left to the next step"
    run 2 train "${small[@]}" "${common[@]}" -n 2 --run-dir refused parallel.carry=always "$other"
    says err 'parallel.carry=always leaves updates to the next step'
done
gan=(aae model.points=64 batch.per_rank=4 data.train_range=0:16 data.test_range=16:20 train.steps=3)
n=$((n + 1))
[ "$(carried 2 "${gan[@]}" parallel.carry=always)" -eq 0 ] || fail "a model of several losses leaves an update to the next step"
same 2 "${gan[@]}"

# Where ranks have a machine each it is the default, elsewhere not.
n=$((n + 2))
[ "$(carried 2 "${small[@]}")" -eq 0 ] || fail "ranks of one machine leave updates to the next step"
[ "$(carried 2 "${small[@]}" --ranks-per-node 1)" -eq 1 ] || fail "ranks of two machines leave no updates to the next step"

# A run that pauses after any step, and goes on with or without, on other ranks.
run 0 train "${small[@]}" "${common[@]}" -n 2 train.steps=12 --run-dir whole parallel.carry=never
for at in 1 5 7; do
    rm -rf part
    run 75 train "${small[@]}" data.kind=synthetic --quiet -n 2 train.steps=12 train.pause_after="${at}st" --run-dir part parallel.carry=always
    run 0 train --resume part -n 2 --quiet train.pause_after=none
    n=$((n + 1))
    [ "$(hash part)" = "$(hash whole)" ] || fail "paused after $at steps: $(hash part), not $(hash whole)"
done

# Losses that are not finite are seen in the step that has them, with the variables as ever.
run 1 train "${small[@]}" "${common[@]}" -n 2 train.steps=20 optimizer.lr=1e6 --run-dir far-off parallel.carry=always
says err 'the training has diverged'
run 1 train "${small[@]}" "${common[@]}" -n 2 train.steps=20 optimizer.lr=1e6 --run-dir far-off-2 parallel.carry=never
n=$((n + 1))
[ "$(hash far-off)" = "$(hash far-off-2)" ] || fail "a run that diverges ends otherwise: $(hash far-off), without $(hash far-off-2)"

# A run that fails between two steps has an update on its way, and no hash of weights that are not what its steps say.
run 0 data make kind=images path=damaged shape=3x32x32 classes=2 train=24 test=4
printf 'no image' >"$(find damaged/train -type f | sort | sed -n 20p)"
run 3 train linear data.kind=images data.path=damaged batch.per_rank=2 train.epochs=1 seed=2 -n 2 --run-dir broken --quiet \
    train.checkpoint_every=none parallel.carry=always
n=$((n + 1))
# (Where rank 0 was ended before it could say more, the words of the beginning stay, with the weights of then.)
grep -q '"steps": 0' broken/summary.json || ! grep -q weights_xxh3 broken/summary.json ||
    fail "a failed run tells of weights that are not those of its step: $(grep -e '"steps"' -e xxh3 -e '"error"' broken/summary.json)"

# Measuring it, also in turns with itself, with clocks on nodes, and for others to read.
run 0 bench "${small[@]}" -n 2 --steps 8 parallel.carry=always --against parallel.carry=never --json
holds 'o["compared"]["ratio"] > 0'
run 0 bench "${small[@]}" -n 2 --steps 5 --profile parallel.carry=always parallel.bucket_mb=0.01
run 0 bench "${small[@]}" -n 2 --steps 5 --export export.json parallel.carry=always parallel.bucket_mb=0.01
python3 - <<'PY' || fail "buckets of an export: $(cat export.json | head -c 1500)"
import json
o = json.load(open("export.json"))
b = o["buckets"]
assert len(b) > 3 and all(x["ready_s"] <= x["needed_s"] <= x["finished_s"] for x in b)
assert [x["ready_s"] for x in b] == sorted(x["ready_s"] for x in b)
PY

# By MPI.
if ! no_mpi >/dev/null; then
    mpi 0 -n 3 "$LOCKSTEP" train "${small[@]}" "${common[@]}" train.epochs=2 --run-dir mpi-with parallel.carry=always
    mpi 0 -n 3 "$LOCKSTEP" train "${small[@]}" "${common[@]}" train.epochs=2 --run-dir mpi-without parallel.carry=never
    n=$((n + 1))
    [ "$(hash mpi-with)" = "$(hash mpi-without)" ] || fail "by MPI: $(hash mpi-with), without $(hash mpi-without)"
fi

[ "$failures" -eq 0 ] && echo "carry: $n checks, all as expected"
exit $((failures > 0))
