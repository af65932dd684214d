#!/usr/bin/env bash
# Every relative link of the documents leads to a file that exists, and every page of docs/ can be reached from docs/README.md.
set -euo pipefail
cd "$(dirname "$0")/../.."
failures=0

mapfile -t pages < <(find README.md docs -name '*.md' | sort)

# links FILE: what its links and pictures point to, without the web and without the place inside a page.
links() {
    grep -oE '\]\([^)]+\)' "$1" | sed -E 's/^\]\(//; s/\)$//; s/[ ].*$//; s/#.*$//' | grep -vE '^(https?:|mailto:|$)' | sort -u || true
}

for page in "${pages[@]}"; do
    while read -r to; do
        [ -e "$(dirname "$page")/$to" ] || { echo "$page: no such file: $to" && failures=$((failures + 1)); }
    done < <(links "$page")
done

reached=$(links docs/README.md)
for page in docs/*.md; do
    name=$(basename "$page")
    [ "$name" = README.md ] || grep -qx "$name" <<<"$reached" || { echo "docs/README.md does not name $name" && failures=$((failures + 1)); }
done

# The test itself must be able to fail.
probe=$(mktemp)
echo 'see [this](no-such-file.md#place)' >"$probe"
[ "$(links "$probe")" = no-such-file.md ] || { echo "links() misses a link" && failures=$((failures + 1)); }
rm -f "$probe"
[ "$failures" -eq 0 ]
