#!/usr/bin/env bash
# Our figures beside those of a simulator: all-reduces in SimGrid (tests/tools/simgrid_run.c), on the same links and ways, with
# actors that know nothing of ours.  Rings within 2 %, all others, which get into one another's way, within 5 %.
set -uo pipefail
run=$LS_BUILD_DIR/tests/tools/simgrid_run
[ -x "$run" ] || { echo "skipped: no SimGrid (libsimgrid-dev)" && exit 77; }
n=0 failures=0

# compare NETWORK PLACEMENT ALGORITHM RANKS BYTES PERCENT: a line of the table
compare() {
    local out verdict
    n=$((n + 1))
    out=$("$run" "${@:1:5}") || { echo "simgrid_run $*: failed" && failures=$((failures + 1)) && return; }
    verdict=$(awk -v most="$6" '{ e = ($3 / $1 - 1) * 100; print (e < 0 ? -e : e) <= most ? "" : "too far" }' <<<"$out")
    awk -v network="$1" -v placement="$2" -v algorithm="$3" -v ranks="$4" -v verdict="$verdict" '{
        printf "| %-19s | %-10s | %-12s | %4d | %9.6f | %+7.2f %% | %+7.2f %% | %s\n", network,
            placement == "contiguous" ? placement : "random", algorithm, ranks, $1, ($2 / $1 - 1) * 100, ($3 / $1 - 1) * 100, verdict
    }' <<<"$out"
    [ -z "$verdict" ] || failures=$((failures + 1))
}

echo "| network             | placement  | algorithm    | ranks | SimGrid s | closed    | shared    |"
echo "|---|---|---|---|---|---|---|"
for network in infiniband-edr infiniband-edr-2to1 aries slingshot; do
    for ranks in 128 256; do
        for placement in contiguous 1; do
            compare "$network" "$placement" ring "$ranks" 50000000 2
            compare "$network" "$placement" doubling "$ranks" 50000000 5
            compare "$network" "$placement" rabenseifner "$ranks" 50000000 5
        done
    done
    # Of ours, each pair of machines sends: SimGrid has a quarter of a million messages with 128.
    compare "$network" contiguous ours 128 67108864 5
    compare "$network" 1 ours 64 67108864 5
done

echo "$n comparisons, $failures failed"
[ "$failures" -eq 0 ]
