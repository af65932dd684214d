#!/usr/bin/env bash
# ./demo with a program that was built before: it trains on the images that it is given, or says that they are made up, and refuses what
# it cannot have.  (That it builds is what whoever tests this has done.)
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
demo=$here/../../demo
run 0 data make kind=idx path=set train=128 test=32

# show CODE ARGUMENT...: runs ./demo, which must end with CODE
show() {
    local want=$1 got
    shift
    n=$((n + 1))
    BUILD=$(dirname "$LOCKSTEP") "$demo" --run-dir "$work/run" "$@" >"$work/out" 2>"$work/err"
    got=$?
    [ $got -eq "$want" ] || fail "demo $*: exit code $got, not $want: $(cat "$work/err")"
}

export DATA=set
show 0 train.epochs=1
says out "training on the images in $work/set"
says out "What to try next"
n=$((n + 1))
grep -q '"ranks": 2' run/summary.json || fail "not two ranks: $(grep '"ranks"' run/summary.json)"
rm -r run

DATA=none show 0 train.steps=2 data.train_range=0:128 data.test_range=0:32 -n 1
says out "made-up patterns instead (not a result worth quoting)"
rm -r run

DATA=$work/nothing show 2
says err "DATA=$work/nothing: there is no file train-images-idx3-ubyte"
n=$((n + 1))
BUILD=$work/nothing "$demo" >"$work/out" 2>"$work/err"
[ $? -eq 2 ] || fail "a folder without a program is taken"
says err "BUILD=$work/nothing: there is no program"

# Without a GPU the program says why there is none, and nothing is begun; with one it trains there, on one rank.
run 0 info
if why=$(sed -n 's/^backend cuda  *not usable: //p' "$work/out") && [ -n "$why" ]; then
    show 2 --device cuda
    says err "$why"
    [ ! -e run ] || fail "something was created"
else
    show 0 --device cuda train.epochs=1
    grep -q '"ranks": 1' run/summary.json || fail "not one rank"
fi

[ "$failures" -eq 0 ] && echo "demo: $n checks, all as expected"
exit $((failures > 0))
