#!/usr/bin/env bash
# The small experiments reach what they state: the two cheapest of them, in the ways that once did not; the script that looks
# through all (bench/small_experiments.sh) notices one that does not; and docs/gallery.md states what the files state.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
command -v python3 >/dev/null || { echo "skipped: no python3 to compare figures with" && exit 77; }
slow_build && { echo "skipped: with a sanitizer this takes an hour" && exit 77; }

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

small 0 --only mnist-small,linear-small --seeds 5 --ways 1t,2t,2r
[ "$(grep -c '| reached |' "$work/out")" -eq 6 ] || fail "not six ways: $(cat "$work/out")"
cat "$work/out"
rm -r "$work/small/runs"
small 1 --only mnist-small --seeds 5 --ways 1t --set train.epochs=1
says out "missed: seed 5"
rm -r "$work/small/runs"
small 1 --only mnist-small --seeds 5 --ways 1t --set optimizer.lr=never
says out "missed: seed 5: no figure"
says err "seed 5: failed"
small 2 --only nothing-small

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
