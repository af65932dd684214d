#!/usr/bin/env bash
# Batches that cannot be are refused before anything is compiled for them, and compiling, which may take long, can be ended.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
unset LOCKSTEP_TUNE

# --- more than the set has: no kernel was timed for it, and nothing is left --------------------------------------------
run 0 data make kind=idx path=set train=200 test=50
export LOCKSTEP_CACHE=$work/cache
# After each: what times kernels for 201 samples would do so for minutes for more.
nothing_timed() {
    n=$((n + 1))
    [ -z "$(ls -A cache 2>/dev/null)" ] && return
    echo "FAILED: kernels were timed for a batch that cannot be: $(head -c 200 cache/*)"
    exit 1
}
for size in 201 100000; do
    run 2 train mnist data.kind=idx data.path=set batch.per_rank=$size
    says err "an update takes $size samples (batch.per_rank=$size, ranks=1, parallel.accumulate=1), which is more than the training set has (200)"
    nothing_timed
done
run 2 train mnist data.kind=idx data.path=set batch.per_rank=101 -n 2
says err 'an update takes 202 samples'
run 2 bench mnist data=real data.kind=idx data.path=set batch.per_rank=201
says err 'more than the training set has (200)'
nothing_timed
[ ! -e runs ] || fail "a refused run left $(ls runs)"
run 2 train mnist batch.per_rank=1e12
says err 'batch.per_rank: 1e12 is outside 1 to 1e+06'

# --- what holds for all ranks is told by one of them ---------------------------------------------------------------------
for words in "train mnist -n 2" "bench mnist data=real -n 2"; do
    run 2 $words batch.per_rank=5000 data.kind=synthetic data.train_range=0:200 data.test_range=200:240
    n=$((n + 1))
    [ "$(grep -c 'an update takes 10000 samples' "$work/err")" -eq 1 ] || fail "$words: not told once: $(cat "$work/err")"
done
run 3 train mnist data.kind=npy data.path=nowhere -n 2
n=$((n + 1))
[ "$(grep -c 'lockstep train: ' "$work/err")" -eq 1 ] || fail "not told once: $(cat "$work/err")"

# --- more than the machine has: said before kernels are timed ------------------------------------------------------------
run 1 plan resnet18 batch.per_rank=1000000
says err 'and this machine has'
says err 'lower batch.per_rank'

# --- a request to stop while kernels are timed -----------------------------------------------------------------------------
for ranks in 1 2; do
    rm -rf cache runs
    LOCKSTEP_LOG=debug "$LOCKSTEP" train resnet18-cifar-stem data.kind=synthetic batch.per_rank=64 -n $ranks --run-dir long --quiet >"$work/out" 2>"$work/err" &
    pid=$!
    until grep -q 'tune: conv' "$work/err"; do # the first of many shapes has been timed
        kill -0 $pid 2>/dev/null || break
        read -rt 0.05 <> <(:) || true
    done
    kill -TERM $pid
    wait $pid
    code=$?
    n=$((n + 2))
    [ $code -eq 75 ] || fail "$ranks ranks: exit code $code, not 75: $(tail -3 "$work/err")"
    grep -v tune: "$work/err" >"$work/said" && mv "$work/said" "$work/err"
    says err 'stopped on request before the first step'
    [ ! -e long ] || fail "$ranks ranks: a run that never began left $(ls long)"
done

[ "$failures" -eq 0 ] && echo "batch: $n checks, all as expected"
exit $((failures > 0))
