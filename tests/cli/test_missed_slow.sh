#!/usr/bin/env bash
# bench/small_experiments.sh notices a small experiment that does not reach what it states, and one that does not run; and
# docs/gallery.md states what the files state.  That they do reach it takes minutes: cli/small_experiments_long.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
needs_python

# small CODE OPTION...
small() {
    local want=$1 got
    shift
    n=$((n + 1))
    bench/small_experiments.sh --dir "$work/small" "$@" "$LOCKSTEP" >"$work/out" 2>"$work/err"
    got=$?
    [ $got -eq "$want" ] || fail "small_experiments.sh $*: exit code $got, not $want: $(cat "$work/out" "$work/err")"
}

for file in experiments/*-small.yaml; do
    name=$(basename "$file" .yaml) figure=$(sed -n 's/^# Reaches: //p' "$file")
    n=$((n + 2))
    [ -n "$figure" ] || fail "$file states nothing"
    grep -qF "| \`$name\` | $figure |" docs/gallery.md || fail "docs/gallery.md does not say that $name reaches $figure"
done

small 1 --only mnist-small --seeds 5 --ways 1t --set train.epochs=1
says out "missed: seed 5"
rm -r "$work/small/runs"
small 1 --only mnist-small --seeds 5 --ways 1t --set optimizer.lr=never
says out "missed: seed 5: no figure"
says err "seed 5: failed"
small 2 --only nothing-small

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
