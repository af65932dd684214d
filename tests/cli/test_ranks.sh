#!/usr/bin/env bash
# `lockstep train -n`: ranks compute what one rank computes, stop and go on together, and refuse together.
# Under mpirun: test_ranks_mpi_slow.sh; when they are killed: test_ranks_killed.sh.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
# An epoch ends with a short update, of which some ranks get less and some nothing; dropout and momentum are in play.
common=(data.kind=synthetic data.train_range=0:197 data.test_range=197:230 train.report_every=1st optimizer.momentum=0.9)
same=(reproducible=true batch.global=48)

# So many images at a time, whoever computes them.
for ranks in 1 2 4 8; do
    run 0 train mnist "${common[@]}" batch.per_rank=$((64 / ranks)) train.steps=12 -n $ranks --run-dir "by-$ranks" --quiet
    same_losses by-1 "by-$ranks" 12
done
# A batch that ranks cannot share evenly; and several batches to an update.
run 0 train mnist "${common[@]}" batch.global=64 train.steps=12 -n 3 --run-dir uneven --quiet
same_losses by-1 uneven 12
run 0 train mnist "${common[@]}" batch.global=64 parallel.accumulate=2 train.steps=12 -n 3 --run-dir added --quiet
same_losses by-1 added 12

# With reproducible=true they are the same bits.
for ranks in 1 3 4; do
    run 0 train mnist "${common[@]}" "${same[@]}" train.steps=12 -n $ranks --run-dir "bits-$ranks" --quiet
    [ "$(hash "bits-$ranks")" = "$(hash bits-1)" ] || fail "$ranks ranks: $(hash "bits-$ranks"), one: $(hash bits-1)"
done
# What ranks keep once is not compared with itself, and the log says so; what each has of its own is.
for share in always never; do
    run 0 train mnist "${common[@]}" batch.per_rank=16 train.steps=2 parallel.share=$share -n 2 --run-dir "share-$share" --quiet
done
n=$((n + 2))
grep -q 'keep 8 variables of the model once: parallel.verify_every compares the 0 that each has of its own' share-always/logs/rank-00000.log ||
    fail "the log does not say what is not compared: $(cat share-always/logs/rank-00000.log)"
grep -q 'of the model once' share-never/logs/rank-00000.log && fail "variables that are not shared are said to be"
run 2 train mnist "${common[@]}" "${same[@]}" parallel.shards=3 -n 4 --run-dir refused
says err 'parallel.shards=3 must lie between the number of ranks (4)'
[ ! -e refused ] || fail "a refused run left its folder"

# Four ranks are told to stop; three go on, and one.  The run has far more steps than it can do meanwhile.
"$LOCKSTEP" train mnist "${common[@]}" "${same[@]}" train.steps=1000000 -n 4 --run-dir paused --quiet >"$work/out" 2>"$work/err" &
pid=$!
reached paused 9 $pid
kill -TERM $pid
wait $pid
code=$?
[ $code -eq 75 ] || fail "SIGTERM to four ranks: exit code $code, not 75: $(cat "$work/err")"
steps=$(($(grep -o '"steps": [0-9]*' paused/summary.json | grep -o '[0-9]*') + 6))
run 0 train mnist "${common[@]}" "${same[@]}" train.steps=$steps --run-dir whole --quiet
for ranks in 3 1; do
    cp -r paused "on-$ranks"
    run 0 train mnist "${common[@]}" "${same[@]}" train.steps=$steps -n $ranks --resume="on-$ranks" --quiet
    [ "$(hash "on-$ranks")" = "$(hash whole)" ] ||
        fail "stopped on 4 ranks, continued on $ranks: $(hash "on-$ranks"), without a stop $(hash whole) (step $steps)"
done

# A damaged image, which one rank meets: the run ends with its error, and skipping it works on all ranks.
images=(data.kind=images data.path=images data.channels=1 batch.per_rank=4 train.epochs=1 train.report_every=1st)
run 0 data make kind=images path=images shape=1x28x28 train=60 test=20
damaged=$(find images/train -name '*.jpg' -o -name '*.jpeg' | sort | sed -n 30p)
printf 'no image' >"$damaged"
run 3 train mnist "${images[@]}" -n 3 --run-dir damaged --quiet
says err "$damaged"
run 0 train mnist "${images[@]}" data.on_error=skip data.max_skipped=1 -n 3 --run-dir skipped --quiet
says err "$damaged"

# Until an update each rank has sums of gradients of its own: no checkpoint of several ranks falls in between.
run 0 train mnist "${common[@]}" batch.global=64 parallel.accumulate=2 train.steps=4 train.checkpoint_every=32sa train.keep=9 -n 2 \
    --run-dir between --quiet
for at in between/checkpoints/step-*; do
    run 0 ckpt show "$at"
    grep -q accumulated "$work/out" && fail "$at holds gradients of one rank"
done
[ "$(ls -d between/checkpoints/step-* | wc -l)" -eq 4 ] || fail "not one checkpoint for each of 4 updates: $(ls between/checkpoints)"

[ $failures -eq 0 ] && echo "test_ranks: $n checks passed"
exit $((failures > 0))
