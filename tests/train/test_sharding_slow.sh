#!/usr/bin/env bash
# Sharding: every strategy on more ranks, in more ways than the quick test.
set -euo pipefail
"${LS_BUILD_DIR:?the build folder}/tests/train/test_sharding" all

# What plans say they take is what is taken, under every strategy, on the host and on a device with memory of its own.
for device in cpu far; do
    for strategy in zero1 fsdp hybrid; do
        result=$("${LOCKSTEP:?the program}" bench linear -n 2 --threads 1 --device $device --steps 3 --json parallel.strategy=$strategy | tail -n 1)
        planned=$(grep -oE '"planned_bytes": *[0-9]+' <<<"$result" | grep -oE '[0-9]+$')
        used=$(grep -oE '"used_bytes": *[0-9]+' <<<"$result" | grep -oE '[0-9]+$')
        [ -n "$planned" ] && [ "$planned" = "$used" ] || { echo "$device, $strategy: planned $planned bytes, used $used"; exit 1; }
    done
done
