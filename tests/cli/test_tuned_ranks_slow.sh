#!/usr/bin/env bash
# Kernels are chosen by one rank of a machine, before the others begin, for all batches that they will meet: a first run, whose choices
# are timed, ends with the bits of the next one, and no other rank times anything.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
unset LOCKSTEP_TUNE
export LOCKSTEP_CACHE=$work/choices

# Epochs of 100 samples end with a batch of 36, of which each of two ranks has 18, and sets for tests with others.
small=(mnist data.kind=synthetic data.train_range=0:100 data.test_range=100:131 batch.per_rank=32 train.epochs=2 train.validate_every=1ep
    train.checkpoint_every=none -n 2 --quiet)
LOCKSTEP_LOG=debug run 0 train "${small[@]}" --run-dir first
n=$((n + 2))
grep -q 'tune: ' "$work/err" || fail "nothing was timed: $(head -c 600 "$work/err")"
grep -q '^\[rank 1\].*tune: ' "$work/err" && fail "rank 1 timed: $(grep '^\[rank 1\].*tune: ' "$work/err" | head -3)"
LOCKSTEP_LOG=debug run 0 train "${small[@]}" --run-dir second
n=$((n + 2))
grep -q 'tune: ' "$work/err" && fail "timed again: $(grep 'tune: ' "$work/err" | head -3)"
[ "$(hash first)" = "$(hash second)" ] || fail "the first run ends with $(hash first), the second with $(hash second)"

# Weights that are gathered in 16 bits are other operands than those of a rank alone.
gathered=(vit-tiny data.kind=synthetic data.train_range=0:40 data.test_range=40:51 batch.per_rank=8 train.steps=4 train.checkpoint_every=none
    precision=bf16 parallel.strategy=fsdp -n 2 --threads 1 --quiet)
LOCKSTEP_LOG=debug run 0 train "${gathered[@]}" --run-dir gathered
n=$((n + 3))
grep -q 'tune: ' "$work/err" || fail "nothing was timed of what is gathered: $(head -c 600 "$work/err")"
grep -q '^\[rank 1\].*tune: ' "$work/err" && fail "rank 1 timed: $(grep '^\[rank 1\].*tune: ' "$work/err" | head -3)"
run 0 train "${gathered[@]}" --run-dir again
[ "$(hash gathered)" = "$(hash again)" ] || fail "gathered: the first run ends with $(hash gathered), the second with $(hash again)"

# Where choices cannot be kept, one line says what follows.
run 0 train "${small[@]}" --run-dir third --threads 1 2>&1
LOCKSTEP_CACHE=/proc/nowhere run 0 train "${small[@]}" --run-dir fourth
says err 'kernel choices are not remembered, so that another run may choose others'

[ "$failures" -eq 0 ] && echo "tuned_ranks: $n checks, all as expected"
exit $((failures > 0))
