#!/usr/bin/env bash
# predict --calibrate on two machines, joined by hand: both run the same command, machine 0 writes what it learnt of the links.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/machines_lib.sh"
command -v python3 >/dev/null || skip "no python3"
make_machines 2
cd "$work" || exit 1

# calibrate I: on machine I, in a folder of its own
calibrate() {
    mkdir -p "at.$1"
    on "$1" env -C "at.$1" MASTER_ADDR="$net.1" MASTER_PORT=$port NODE_RANK="$1" LOCKSTEP_THREADS=1 "$LOCKSTEP" predict --calibrate mnist --batches 8 --ranks 1,2 \
        --nodes 2 --threads 1 --sizes 4KiB,256KiB,2MiB --steps 5
}
calibrate 1 &
calibrate 0
wait
code 0 0
code 1 0
says 0 "] exchanges of 2 machines of 1 rank:"
says 0 "] exchanges of 2 machines of 2 ranks:"
says 0 "] steps of 2 machines of 2 ranks, batch 8:"
says 0 "] exchanges of 2 ranks:"
says 0 "] steps of 1 rank, batch 8:"
says 0 "checked     mnist, batch 8, 4 ranks on 2 machines: "
says 1 "[3/3] steps of 2 machines of 2 ranks, batch 8:"
# Both machines are this one: where it has no core for each rank, their times say nothing, and are left out.
ranks=4
[ "$(nproc)" -ge 4 ] || ranks=2
says 0 "of up to $ranks ranks on 2 machines"
if [ $ranks = 4 ]; then
    says 0 "for each doubling beyond 4 ranks"
else
    says 0 "times of ranks that shared cores were left out"
fi
says 1 "measured together with machine 0"
[ ! -e at.1/calibration.json ] || fail "machine 1 has written a calibration"
python3 - $ranks <<'END' || fail "calibration.json"
import json, sys
o = json.load(open("at.0/calibration.json"))
n = o["network"]
assert [(t["ranks"], t["nodes"]) for t in o["machine"]["together"]] == [(4, 2), (2, 1)]
ranks = int(sys.argv[1])
assert n["measured_ranks"] == ranks and n["measured_nodes"] == 2 and n["ranks_per_node"] == 2
assert n["node"]["bytes_s"] > 1e6 and n["inside"]["bytes_s"] > 1e6 and (n["error_per_doubling"] > 0) == (ranks == 4)
assert not n.get("sources"), "both links were measured"
END
nobody_left
finish
