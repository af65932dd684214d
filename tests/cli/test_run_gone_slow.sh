#!/usr/bin/env bash
# A run directory that is moved or removed while the run goes on: it is said once, by name, with what is left; nothing is made anew,
# and who watches the run does not watch for ever.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work

# start NAME ARGUMENT...: trains until it is ended, with a report that is watched; returns when both are at work
start() {
    "$LOCKSTEP" train mnist data.kind=synthetic data.train_range=0:64 data.test_range=64:80 batch.per_rank=8 train.steps=20000 \
        train.validate_every=none train.checkpoint_every=50st train.report_every=10st --quiet --run-dir "$@" >out 2>"$work/err" &
    pid=$!
    reached "$1" 20 $pid
    until [ -e "$1/checkpoints/last" ] || ! kill -0 $pid; do breathe; done
    rm -f watched # that of the run before
    "$LOCKSTEP" report "$1" --watch --out page >watched 2>watched.err &
    watcher=$!
    until grep -q watching watched 2>/dev/null || ! kill -0 $watcher; do breathe; done
}

# ends TEXT...: both end with exit code 1, and the run says this
ends() {
    local code
    wait $pid
    code=$?
    n=$((n + 2))
    [ $code -eq 1 ] || fail "exit code $code, not 1: $(cat "$work/err")"
    [ "$(grep -c 'while the run went on' "$work/err")" -eq 1 ] || fail "not said once: $(cat "$work/err")"
    for part; do says err "$part"; done
    wait $watcher
    code=$?
    n=$((n + 1))
    [ $code -eq 1 ] && grep -q "was moved or removed" watched.err || fail "--watch: exit code $code: $(cat watched.err)"
}

start removed
until rm -rf removed 2>/dev/null; do breathe; done # it may just be putting something there
ends "the run directory removed was removed" "nothing of the run is kept"
n=$((n + 1))
[ ! -e removed ] || fail "made anew: $(find removed)"

for ranks in 1 2; do
    start "moved-$ranks" -n $ranks
    mv "moved-$ranks" "now at $ranks"
    ends "the run directory moved-$ranks was moved to $work/now at $ranks" "lockstep train --resume='$work/now at $ranks'"
    n=$((n + 1))
    [ ! -e "moved-$ranks" ] || fail "made anew: $(find "moved-$ranks")"
    last=$(readlink "now at $ranks/checkpoints/last")
    run 0 train --resume="now at $ranks" train.steps=$((10#${last#step-} + 10)) --quiet
done

[ "$failures" -eq 0 ] && echo "$n checks of directories that go: all as expected"
exit $((failures > 0))
