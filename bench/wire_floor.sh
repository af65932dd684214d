#!/usr/bin/env bash
# wire_floor.sh [STEPS]: what the system alone takes of a core that computes for WORK (170) ms a step while it sends and receives
# MB (44.7: the gradients of ResNet-18 at 32 x 32) over one connection, without adding up anything; see wire_floor.c.  Two network
# namespaces of one core each, behind links of RATE (2500mbit).  Milliseconds of a step, medians of STEPS (20), the mean of both hosts.
# The two hosts should have a quiet core each.  Needs root, ip, tc and a C compiler.
set -euo pipefail
runs=${1:-20}
. "$(dirname "$0")/hosts_lib.sh"
"${CC:-cc}" -O3 -march=native -ffast-math -D_GNU_SOURCE -o "$work/wire_floor" "$(dirname "$0")/wire_floor.c"

# on HOST connect|listen LOOK CACHE hot|cold
on() {
    ip netns exec "${host[$1]}" taskset -c "$1" "$work/wire_floor" "$net.1" $port "$2" "${MB:-44.7}" "${WORK:-170}" "$3" "$4" "$5" "$runs" >"$work/floor.$1"
}

printf '%-10s %-12s %-6s %12s %14s %13s\n' "look us" "cache KiB" from "work alone" "more by clock" "more charged"
for memory in hot cold; do
    for cache in 0 1024; do
        for look in 500 1000 2000; do
            on 1 connect $look $cache $memory &
            on 0 listen $look $cache $memory
            wait
            cat "$work/floor.0" "$work/floor.1" | awk -v l=$look -v c=$cache -v m=$memory '{ a += $1; t += $2; u += $3 }
                END { printf "%-10d %-12d %-6s %12.1f %14.1f %13.1f\n", l, c, m, a / NR, t / NR, u / NR }'
        done
    done
done
