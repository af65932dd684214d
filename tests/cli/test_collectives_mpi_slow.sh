#!/usr/bin/env bash
# bench --collectives by a real mpirun, on one machine and on several: what is sent, and the wire of 16 bits.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/../tools/mpi_here.sh"
needs_mpi
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
needs_python
enter_work

# lines EXPRESSION...: over o, every line of the last output, and all of them
lines() {
    n=$((n + $#))
    python3 - "$@" <"$work/out" 3<&0 <<'END' || fail "not true of the lines: $*"
import json, os, sys
all = [json.loads(l) for l in os.fdopen(3).read().splitlines() if l.startswith("{")]
assert all, "no lines"
for o in all:
    for e in sys.argv[1:]:
        assert eval(e), (e, o)
END
}

mpi 0 -n 2 "$LOCKSTEP" bench --collectives --sizes 4KiB,256KiB --steps 5 --json
lines 'o["hosts"] == 1 and o["ranks"] == 2 and o["sent_bytes"] == 0 and o["wire"] == "f32"' 'len(all) == 6'

# Each rank a machine: of an all-reduce a machine sends 2 (H - 1) / H of the vector, of the halves of it one each.
export LOCKSTEP_COMM_HOSTS=2
mpi 0 -n 2 "$LOCKSTEP" bench --collectives --sizes 256KiB,1MiB --steps 5 --json
lines 'o["hosts"] == 2 and o["most_ranks_of_host"] == 1 and o["core_s"] > 0' 'len(all) == 10' \
    'o["wire_bytes"] == o["bytes"] * (1 if o["wire"] == "f32" else 0.5)' \
    'o["sent_bytes"] == o["wire_bytes"] * (1 if o["kind"] == "all_reduce" else 0.5)' \
    'sorted(p["wire"] for p in all if p["kind"] == o["kind"]) == (["f32"] * 2 if o["kind"] == "all_gather" else ["bf16"] * 2 + ["f32"] * 2)'
# Two machines of two ranks: as much is sent, for ranks of a machine add up first; what is scattered goes to one of them.
mpi 0 -n 4 "$LOCKSTEP" bench --collectives --sizes 1MiB --steps 5 --json
lines 'o["hosts"] == 2 and o["ranks"] == 4 and o["most_ranks_of_host"] == 2 and len(o["rank_core_s"]) == 4' \
    'o["sent_bytes"] == o["wire_bytes"] * (1 if o["kind"] == "all_reduce" else 0.5)'
mpi 0 -n 2 "$LOCKSTEP" bench --collectives --sizes 64KiB --steps 5
says out "2 ranks on 2 machines"
says out "sent"
says out "bf16"

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
