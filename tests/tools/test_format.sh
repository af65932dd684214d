#!/usr/bin/env bash
# All C files are as clang-format 14 would write them (other versions differ in details).
set -euo pipefail
export LC_ALL=C # what is sorted now is compared with what was sorted before
cd "$(dirname "$0")/../.."
tool=
for name in clang-format-14 clang-format; do
    if command -v "$name" >/dev/null && "$name" --version | grep -q 'version 14\.'; then
        tool=$name
        break
    fi
done
if [ -z "$tool" ]; then
    echo "skipped: clang-format 14 is not installed"
    exit 77
fi
files=$(find . -path './build*' -prune -o -path './.*' -prune -o -name '*.[ch]' -print | sort)
# To look at all takes ten seconds of a core.  Files that were found as they should be, by the same program and rules, are known by
# their contents the next time.
rules=$({ "$tool" --version && cat .clang-format; } | sha256sum | cut -c 1-64)
now=$(mktemp) known=${LS_BUILD_DIR:+$LS_BUILD_DIR/tests/formatted}
trap 'rm -f "$now"' EXIT
echo "$files" | xargs sha256sum | sed "s/^/$rules /" | sort >"$now"
[ -f "$known" ] && before=$known || before=/dev/null
new=$(comm -23 "$now" "$before" | sed 's/^[^ ]* [^ ]*  //')
# One line per place: "FILE:LINE:COLUMN: error: code should be clang-formatted".
bad=$(echo "$new" | xargs -r "$tool" --dry-run -Werror 2>&1 | awk -F: '/: error: / { print $1 }' | sort -u || true)
echo "$(echo "$files" | wc -l) files, $(grep -c . <<<"$new" || true) of them not seen before"
if [ -n "$bad" ]; then
    printf 'not formatted:\n%s\nrun: %s -i %s\n' "$bad" "$tool" "$(echo "$bad" | tr '\n' ' ')"
    exit 1
fi
[ -z "$known" ] || cp "$now" "$known"
