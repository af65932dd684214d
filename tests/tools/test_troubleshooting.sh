#!/usr/bin/env bash
# Every message that docs/troubleshooting.md explains is one that the program can say: the constant parts of what stands in
# `quotes` in the first column occur in the strings of the sources.
set -euo pipefail
cd "$(dirname "$0")/../.."
failures=0 checked=0

# All string literals, those that the compiler joins joined, escaped quotes left out.
literals=$(mktemp)
trap 'rm -f "$literals"' EXIT
cat src/*/*.c src/*/*/*.c cmd/*.c | tr '\n' ' ' | sed -E 's/\\"//g; s/" *"//g' >"$literals"

# known TEXT: each of its constant parts occurs
known() {
    local part
    while read -r part; do
        [ -z "$part" ] || grep -qF -- "$part" "$literals" || return 1
    done < <(sed 's/…/\n/g' <<<"$1" | sed 's/^ *//; s/ *$//')
}

while read -r message; do
    checked=$((checked + 1))
    known "$message" || { echo "no source says: $message" && failures=$((failures + 1)); }
done < <(sed -n 's/^| `\([^`]*\)` |.*/\1/p' docs/troubleshooting.md)

known "is not empty … words that nobody would write here" && { echo "the test accepts anything" && failures=$((failures + 1)); }
[ "$checked" -ge 20 ] || { echo "only $checked messages were found in the page" && failures=$((failures + 1)); }
echo "$checked messages"
[ "$failures" -eq 0 ]
