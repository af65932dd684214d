#!/usr/bin/env bash
# runs_list.sh [N]: how long `lockstep runs list` takes for N (1,000) runs, in the median of 9, and what it reads.
# The runs are copies of one that is trained here, with other times, metrics and learning rates.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$PWD/${LOCKSTEP:-build/lockstep} n=${1:-1000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
LOCKSTEP_TUNE=off "$program" train mnist data.kind=synthetic train.steps=4 train.validate_every=2st train.report_every=1st --threads 1 --quiet \
    --run-dir one >/dev/null
mkdir runs
for ((i = 0; i < n; i++)); do
    at=$(printf '2026-%02d-%02dT%02d:00:00.000Z' $((i / 336 % 12 + 1)) $((i / 12 % 28 + 1)) $((2 * (i % 12))))
    run=runs/mnist-$(tr -d :- <<<"${at:0:10}")-${at:11:2}0000-$(printf %04x "$i")
    mkdir "$run"
    sed "s/\"started\": \"[^\"]*\"/\"started\": \"$at\"/; s/\"acc\": [0-9.]*/\"acc\": 0.$((i * 7919 % 9000 + 1000))/" one/summary.json >"$run/summary.json"
    sed "s/\"start\": \"[^\"]*\"/\"start\": \"$at\"/" one/owner.json >"$run/owner.json"
    sed "s/^  lr: .*/  lr: 0.0$((i % 9 + 1))/; s/^seed: .*/seed: $i/" one/config.yaml >"$run/config.yaml"
done
"$program" runs list | tail -2
TIMEFORMAT='%R %U %S'
for ((k = 0; k < 9; k++)); do { time "$program" runs list >/dev/null; } 2>&1; done >times
for column in 1:elapsed 2:user 3:system; do
    echo "$(awk "{ print \$${column%%:*} }" times | sort -n | sed -n 5p) s ${column#*:} for $n runs (median of 9)"
done
if command -v strace >/dev/null; then
    strace -f -c -o "$work/calls" "$program" runs list >/dev/null 2>&1 || true
    awk -v n="$n" '$NF ~ /^(open|openat|read|pread64|stat|newfstatat|access|fcntl|mmap|brk)$/ { printf "%-12s %7.2f per run\n", $NF, $4 / n }' "$work/calls"
fi
