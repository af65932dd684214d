#!/usr/bin/env bash
# test_profile_slow.sh: the profile and the trace of two ranks account for the step that they are of, exchanges included.
#
# What must add up is checked exactly; where times of different steps are compared, a machine that others use may be off by several
# times, and only what is of another order fails (bench/profile_step.sh measures).
set -uo pipefail
. "$(dirname "$0")/cli_lib.sh"
needs_python

# check ARGUMENT...: the profile of this command line
check() {
    run 0 bench "$@" -n 2 --threads 1 --steps 5 --profile --json
    n=$((n + 1))
    python3 - "$work/out" <<'P' || fail "the profile of $*"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
p, = [o for o in lines if o["event"] == "profile"]
near = lambda a, b: abs(a - b) <= 1e-6 * max(abs(a), abs(b))
assert near(p["seconds"], sum(n["seconds"] for n in p["nodes"])), "nodes do not add up"
assert near(p["seconds"], sum(o["seconds"] for o in p["ops"])), "kinds do not add up"
assert near(p["step_s"], p["seconds"] + p["exchange_s"] + p["rest_s"]), "parts do not add up"
assert p["seconds"] > 0 and p["exchange_s"] > 0 and p["rest_s"] > 0, p
assert 0.1 < p["step_s"] / p["plain_step_s"] < 10, (p["step_s"], p["plain_step_s"])
assert {"all_reduce_start", "all_reduce_wait"} <= {o["op"] for o in p["ops"]}
P
}
check mnist batch.per_rank=8
check mnist batch.per_rank=8 parallel.accumulate=2 # gradients and update are plans of their own
n=$((n + 1))
python3 -c '
import json, sys
p, = [o for o in map(json.loads, open(sys.argv[1])) if o["event"] == "profile"]
assert any(n["op"] == "sgd" for n in p["nodes"]), "the update is not in it"' "$work/out" || fail "the profile of an update"

# -- the export: the same sums, by plan
run 0 bench mnist -n 2 --threads 1 --steps 5 batch.per_rank=8 parallel.accumulate=2 --export "$work/export.json"
n=$((n + 1))
python3 - "$work/export.json" <<'P' || fail "the export"
import json, sys
o = json.load(open(sys.argv[1]))
assert o["format"] == 2 and [p["part"] for p in o["plans"]] == ["gradients", "update"]
assert [p["runs_per_step"] for p in o["plans"]] == [2, 1]
for key, whole in ("seconds", "nodes_s"), ("progress_s", "exchange_s"):
    parts = sum(p["runs_per_step"] * n[key] for p in o["plans"] for n in p["nodes"])
    assert abs(parts - o["profile"][whole]) <= 1e-6 * parts, (key, parts, o["profile"])
assert all(b["finished_s"] >= b["needed_s"] >= 0 and b["ready_s"] > 0 for b in o["buckets"]) and o["buckets"]
P

# -- the trace: spans fill their step
run 0 train mnist -n 2 --threads 1 --quiet batch.per_rank=64 data.kind=synthetic train.steps=12 train.trace=12 --run-dir "$work/run"
n=$((n + 1))
python3 - "$work/run/trace-00000.json" <<'P' || fail "the trace"
import json, statistics, sys
events = json.load(open(sys.argv[1]))
covered = []
for s in (e for e in events if e["cat"] == "step"):
    inside = [e for e in events if e["cat"] != "step" and s["ts"] <= e["ts"] < s["ts"] + s["dur"]]
    covered.append(sum(e["dur"] for e in inside) / s["dur"])
    assert {"wait", "exchange", "update", "backward", "node"} <= {e["cat"] for e in inside}
assert statistics.median(covered) > 0.5 and max(covered) < 1.0001, covered
P

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
