#!/usr/bin/env bash
# profile_step.sh [ROUNDS]: do the profile and the trace agree with the timed step, communication included?  2 ranks of 1 thread
# take the step of EXPERIMENT (resnet18-cifar, BATCH images each: 16) in turns with and without clocks (`bench --profile`), and
# train with a trace.  Prints, for every round, the parts of the profile, the ratio of their sum to a step without clocks, and the
# ratio of the spans of a traced step to that step; then the medians.  Exit code 1 unless both lie within 5 %.
set -euo pipefail
rounds=${1:-5}
lockstep=${LOCKSTEP:-$(dirname "$0")/../build/lockstep}
experiment=${EXPERIMENT:-resnet18-cifar} batch=${BATCH:-16}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for ((round = 0; round < rounds; round++)); do
    "$lockstep" bench "$experiment" -n 2 --threads 1 "batch.per_rank=$batch" --seconds 1 --profile --json \
        2>/dev/null | grep '"event": *"profile"' >"$work/profile-$round.json"
    "$lockstep" train "$experiment" -n 2 --threads 1 --quiet --run-dir "$work/run" data.kind=synthetic \
        data.train_range=0:512 data.test_range=512:544 "batch.per_rank=$batch" train.steps=12 train.trace=12 \
        train.checkpoint_every=none train.validate_every=none >/dev/null
    mv "$work/run/trace-00000.json" "$work/trace-$round.json"
    rm -rf "$work/run"
done
python3 - "$work" "$rounds" <<'P'
import json, statistics, sys
work, rounds = sys.argv[1], int(sys.argv[2])
profiles, traces = [], []
print("round   nodes ms  exchange ms  around ms    sum ms  without clocks ms   profile/step   trace/step")
for i in range(rounds):
    p = json.load(open(f"{work}/profile-{i}.json"))
    parts = p["seconds"] + p["exchange_s"] + p["rest_s"]
    events = json.load(open(f"{work}/trace-{i}.json"))
    covered = []
    for s in (e for e in events if e["cat"] == "step"):
        inside = [e["dur"] for e in events if e["cat"] != "step" and s["ts"] <= e["ts"] < s["ts"] + s["dur"]]
        covered.append(sum(inside) / s["dur"])
    profiles.append(parts / p["plain_step_s"])
    traces.append(statistics.median(covered[2:]))
    print(f"{i:5d} {1e3 * p['seconds']:10.2f} {1e3 * p['exchange_s']:12.2f} {1e3 * p['rest_s']:10.2f} {1e3 * parts:9.2f}"
          f" {1e3 * p['plain_step_s']:18.2f} {profiles[-1]:14.3f} {traces[-1]:12.3f}")
profile, trace = statistics.median(profiles), statistics.median(traces)
print(f"median: profile/step {profile:.3f}, trace/step {trace:.3f}")
sys.exit(0 if abs(profile - 1) <= 0.05 and abs(trace - 1) <= 0.05 else 1)
P
