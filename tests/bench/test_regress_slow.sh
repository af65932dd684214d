#!/usr/bin/env bash
# bench/regress: a step that executes more instructions than its baseline says fails by name, one that does not passes,
# other conditions are not compared; and the smallest steps are within the baseline of the repository.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 1
: "${LS_BUILD_DIR:?the build folder}"
command -v valgrind >/dev/null || { echo "skipped: no valgrind to count instructions with" && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
    echo "FAILED: $*: $(cat "$work/out")"
    failures=$((failures + 1))
}

# regress CODE OPTION...: the exit code must be CODE; 0,77 means either.
regress() {
    local want=$1 got
    shift
    bench/regress --build "$LS_BUILD_DIR" "$@" >"$work/out" 2>&1
    got=$?
    [[ ",$want," == *",$got,"* ]] || fail "regress $*: exit code $got, not $want"
}

says() { grep -qE -- "$1" "$work/out" || fail "no word of \"$1\""; }

# Counted once: that takes seconds.
regress 0 --only vit-tiny --baseline "$work/now" --update

# The repository's baseline, where it was counted under the same conditions.
regress 0,77 --counts "$work/now"
cat "$work/out"

# One of its own: the step has become 6 % slower, or has not; or nobody can tell.
own=(--counts "$work/now" --baseline "$work/baseline")
regress 77 "${own[@]}"
says "there is no $work/baseline"
cp "$work/now" "$work/baseline"
regress 0 "${own[@]}"
says '^vit-tiny +[0-9]+ +[0-9]+ +\+0.00 %'
awk '$1 == "step" { $3 = int($3 / 1.06) } { print }' "$work/now" >"$work/baseline"
regress 1 "${own[@]}"
says '^vit-tiny +[0-9]+ +[0-9]+ +\+(5\.9|6\.0)[0-9] %  LOSS'
regress 0 "${own[@]}" --limit 7
sed 's/^compiler .*/compiler none 1.0/' "$work/now" >"$work/baseline"
regress 77 "${own[@]}"
says "the baseline has compiler none 1.0"
sed 's/batch.per_rank=4/batch.per_rank=5/' "$work/now" >"$work/baseline"
regress 1 "${own[@]}"
says "--update it"

regress 2 --only abacus
says 'no step "abacus"; there are: mnist '
regress 2 --update --against "$LS_BUILD_DIR/lockstep"
regress 2 --limit much

[ $failures -eq 0 ] && echo "test_regress: passed"
exit $((failures > 0))
