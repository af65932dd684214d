#!/usr/bin/env bash
# test_trace.sh: the timelines of two ranks: JSON, as many steps as asked for, and spans that nest.
set -uo pipefail
. "$(dirname "$0")/cli_lib.sh"

run 0 train mnist -n 2 --threads 1 --quiet batch.per_rank=8 data.kind=synthetic train.steps=5 train.trace=3 --run-dir "$work/run"
n=$((n + 1))
if $have_json; then
    python3 - "$work/run/trace-00000.json" "$work/run/trace-00001.json" <<'P' || fail "the timelines are wrong"
import json, sys
for rank, path in enumerate(sys.argv[1:]):
    events = json.load(open(path))
    assert all(e["pid"] == rank and e["ph"] == "X" and e["dur"] >= 0 for e in events), path
    steps = [e for e in events if e["cat"] == "step"]
    assert [e["name"] for e in steps] == ["step 0", "step 1", "step 2"], steps
    end = lambda e: e["ts"] + e["dur"]
    slack = 0.002  # times are written to the nanosecond
    assert all(end(a) <= b["ts"] + slack for a, b in zip(steps, steps[1:]))
    rest = [e for e in events if e["cat"] != "step"]
    assert all(any(s["ts"] <= e["ts"] + slack and end(e) <= end(s) + slack for s in steps) for e in rest)
    assert all(end(a) <= b["ts"] + slack for a, b in zip(rest, rest[1:])), "nodes overlap"
    names = [e["name"] for e in rest]
    assert names.count("all_reduce_wait") == 6 and "conv2d" in names, sorted(set(names))
    assert any(e["args"]["layer"].startswith("conv1") for e in rest)
P
fi
run 0 train mnist --threads 1 --quiet batch.per_rank=8 data.kind=synthetic train.steps=2 --run-dir "$work/plain"
n=$((n + 1))
ls "$work/plain" | grep -q trace && fail "a timeline that nobody asked for"

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
