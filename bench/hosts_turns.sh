#!/usr/bin/env bash
# hosts_turns.sh PROGRAM...: steps between machines, of several builds of lockstep (or one), in turns.
#
# Machines are network namespaces of one rank of one thread each behind links of one switch (many_hosts_lib.sh).  For every link, congestion
# control and set of WORDS a line for each program: median step and central 68 %, and what of all cores' time was spent where.
#   HOSTS (2), LINKS ("250:0": Mbit/s, and microseconds one way), ROUNDS (2), SECONDS_EACH (3)
#   WORDS ("mnist-keras batch.per_rank=128"): of `bench`; several, with ";" between them
#   CONTROLS: of TCP, such as "cubic bbr"; default: the system's.  What namespaces may choose is net.ipv4.tcp_allowed_congestion_control
# Programs that were copied somewhere need LOCKSTEP_MODULES.  Needs root, ip, tc and python3.
set -euo pipefail
[ $# -gt 0 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
out=$(mktemp -d) hosts=${HOSTS:-2}
. "$(dirname "$0")/many_hosts_lib.sh"
spent() { awk '/^cpu /{print $2 + $3, $4 + $7 + $8, $5}' /proc/stat; } # user, system, idle
IFS=';' read -r -a sets <<<"${WORDS:-mnist-keras batch.per_rank=128}"
for link in ${LINKS:-250:0}; do
    link "$link"
    for control in ${CONTROLS:-$(cat /proc/sys/net/ipv4/tcp_congestion_control)}; do
        for ((i = 0; i < hosts; i++)); do ip netns exec "$name-$i" sysctl -qw net.ipv4.tcp_congestion_control="$control"; done
        for words in "${sets[@]}"; do
            for ((round = 0; round < ${ROUNDS:-2}; round++)); do
                for program in "$@"; do
                    lockstep=$(readlink -f "$program")
                    before=$(spent)
                    # shellcheck disable=SC2086 # words
                    together "$hosts" "" $words -n 1 --threads 1 --seconds "${SECONDS_EACH:-3}"
                    after=$(spent)
                    tail -n 1 "$work/said" | python3 -c '
import json, sys
s = json.loads(sys.stdin.read())["step_s"]
took = [int(b) - int(a) for a, b in zip(sys.argv[2].split(), sys.argv[3].split())]
print("%-60s %8.1f ms (%.1f to %.1f)   user %.0f %% system %.0f %% idle %.0f %%" % (sys.argv[1], *(1e3 * s[k] for k in ("p50", "p16", "p84")), *(100 * t / sum(took) for t in took)), flush=True)' \
                        "$link $control $hosts $(basename "$program"): $words" "$before" "$after"
                done
            done
        done
    done
done
rm -rf "$out"
