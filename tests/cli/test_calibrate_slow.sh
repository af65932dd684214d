#!/usr/bin/env bash
# predict --calibrate measures this machine: a whole file or none, whoever ends it, and nobody stays behind.
set -uo pipefail
. "$(dirname "$0")/cli_lib.sh"
needs_python
enter_work
mkdir tmp
export TMPDIR=$work/tmp
how=(--sizes 4KiB,256KiB,4MiB --steps 5)

run 0 predict --calibrate mnist --ranks 1,2 --batches 8,16 "${how[@]}"
for part in "[1/6] exchanges of 2 ranks" "[2/6] steps of 1 rank, batch 8" "[3/6] steps of 1 rank, batch 16" \
    "[4/6] steps of 2 ranks beside one another, batch 8" "[5/6] steps of 2 ranks beside one another, batch 16" "[6/6] steps of 2 ranks, batch 16" "checked     mnist, batch 16, 2 ranks on 1 machine: " \
    "inside      latency" "node        not known" "device cpu, 1 thread a rank" "2 ranks of a machine with batch 16 compute" "of 2 such ranks the slowest" "written       calibration.json"; do says out "$part"; done
python3 - <<'END' || fail "calibration.json"
import json
o = json.load(open("calibration.json"))
assert o["format"] == "lockstep-calibration" and o["version"] == 1
m, n = o["machine"], o["network"]
assert m["format"] == "lockstep-machine" and m["device"] == "cpu" and m["threads"] == 1 and len(m["nodes"]) > 10
assert {p[0] for x in m["nodes"] for p in x["points"]} == {8, 16}, "points of both batches"
assert [(c["ranks"], c["batch"]) for c in m["crowding"]] == [(1, 0), (2, 8), (2, 16)] and len(m["uneven"]) == 2
assert [(t["experiment"], t["ranks"], t["nodes"], t["batch"]) for t in m["together"]] == [("mnist", 2, 1, 16)] and m["together"][0]["computed_s"] > 0
assert n["format"] == "lockstep-network" and n["measured_ranks"] == 2 and n["error"] > 0 and n["inside"]["bytes_s"] > 1e6
END
# With settings of the experiment, as JSON, and together with files.
run 0 bench --collectives -n 2 "${how[@]}" --export more.json
run 0 predict --calibrate linear optimizer.name=adam more.json --ranks 2 --batches 4 "${how[@]}" --json --out both.json
holds 'o["has_network"] and o["has_machine"]' '"18 times" in o["calibration"]["network"]["about"]'

# Asked to stop: nothing is written, nothing left, what was there stays.
before=$(md5sum <both.json)
"$LOCKSTEP" predict --calibrate mnist --ranks 1,2 --seconds 20 --out both.json >out 2>err &
pids=($!)
sleep 3
kill -TERM "${pids[0]}"
wait "${pids[0]}"
[ $? -eq 75 ] || fail "SIGTERM: $(cat err)"
pids=()
says err "stopped on request; nothing was written"
# Killed: the same, but for the folder in \$TMPDIR.  Its children end with it.
"$LOCKSTEP" predict --calibrate mnist --ranks 1,2 --seconds 20 --out both.json >out 2>err &
pids=($!)
sleep 3
children=$(ps -o pid= --ppid "${pids[0]}")
kill -KILL "${pids[0]}"
wait "${pids[0]}" 2>/dev/null
pids=()
for _ in $(seq 100); do
    left=$(for p in $children; do [ -d "/proc/$p" ] && grep -qv '^State:.*Z' "/proc/$p/status" 2>/dev/null && echo "$p"; done)
    [ -z "$left" ] && break
    breathe
    sleep 0.1
done
[ -n "$children" ] || fail "the measurement had no child"
[ -z "$left" ] || fail "still there: $left"
[ "$(md5sum <both.json)" = "$before" ] || fail "a calibration that was ended changed the file"
[ -z "$(ls | grep partial)" ] || fail "half a file: $(ls)"
rm -rf tmp/lockstep-calibrate-*

# Two at once in the same place: the file is one of them at any time.
"$LOCKSTEP" predict --calibrate --ranks 2 "${how[@]}" --out both.json >one 2>&1 &
pids=($!)
"$LOCKSTEP" predict --calibrate --ranks 2 "${how[@]}" --out both.json >two 2>&1 &
pids+=($!)
while kill -0 "${pids[@]}" 2>/dev/null; do
    python3 -c 'import json; json.load(open("both.json"))' || fail "half a file was read"
    breathe
done
wait "${pids[0]}" || fail "the first: $(cat one)"
wait "${pids[1]}" || fail "the second: $(cat two)"
pids=()
python3 -c 'import json; assert "network" in json.load(open("both.json"))' || fail "both.json"
[ -z "$(ls | grep partial)" ] || fail "half a file: $(ls)"
[ -z "$(ls tmp)" ] || fail "left in \$TMPDIR: $(ls tmp)"

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
