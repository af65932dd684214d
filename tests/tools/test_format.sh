#!/usr/bin/env bash
# All C files are as clang-format 14 would write them (other versions differ in details).
set -euo pipefail
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
# One line per place: "FILE:LINE:COLUMN: error: code should be clang-formatted".
bad=$(echo "$files" | xargs "$tool" --dry-run -Werror 2>&1 | awk -F: '/: error: / { print $1 }' | sort -u || true)
echo "$(echo "$files" | wc -l) files looked at"
if [ -n "$bad" ]; then
    printf 'not formatted:\n%s\nrun: %s -i %s\n' "$bad" "$tool" "$(echo "$bad" | tr '\n' ' ')"
    exit 1
fi
