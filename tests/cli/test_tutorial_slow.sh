#!/usr/bin/env bash
# The commands of docs/tutorial.md, one after the other in one folder: each ends as the page says.  Lines that begin with "$ " in
# a block are commands; in a block that opens with ```refused they end with exit code 2, elsewhere with 0.
set -uo pipefail
: "${LOCKSTEP:?the program to test}"
page=$PWD/docs/tutorial.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" && ln -s "$LOCKSTEP" "$work/bin/lockstep" && cd "$work" || exit 1
export PATH=$work/bin:$PATH LOCKSTEP_MODULES=${LOCKSTEP_MODULES:-$LS_BUILD_DIR}
command -v make >/dev/null || { echo "skipped: make is not installed (the page builds a plug-in)" && exit 77; }
unset LOCKSTEP_DATA

failures=0 n=0
while IFS=$'\t' read -r expected command; do
    n=$((n + 1))
    output=$(bash -c "$command" 2>&1 </dev/null)
    code=$?
    if [ "$code" -ne "$expected" ]; then
        printf 'FAILED: exit code %d, not %d: %s\n%s\n' "$code" "$expected" "$command" "$(tail -n 5 <<<"$output")"
        failures=$((failures + 1))
    fi
done < <(awk '/^```/ { inside = !inside; code = /^```refused/ ? 2 : 0; next } inside && sub(/^\$ /, "") { print code "\t" $0 }' "$page")

# What the page says of the results, where it matters.
same() {
    n=$((n + 1))
    [ "$(grep -h weights_xxh3 "runs/$1/summary.json")" = "$(grep -h weights_xxh3 "runs/$2/summary.json")" ] ||
        { echo "FAILED: runs/$1 and runs/$2 have other weights" && failures=$((failures + 1)); }
}
same one two
[ "$n" -ge 20 ] || { echo "FAILED: only $n commands were found in the page" && failures=$((failures + 1)); }
echo "$n commands"
[ "$failures" -eq 0 ]
