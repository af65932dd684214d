#!/usr/bin/env bash
# Load, memory, power and temperature of a GPU in a run: seen through the driver's library (here one of the tests' own, by the device
# `far`), written into gpu.jsonl and for TensorBoard, drawn in the report.  Where the library is missing, broken or says less, runs are as ever.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
needs_python
fake=$LS_BUILD_DIR/tests/fake
small=(linear model.size=4 model.channels=1 model.classes=2 data.kind=synthetic data.train_range=0:16 data.test_range=16:20
    batch.per_rank=4 train.report_every=1st --device far)

# names RUN: the names in the first line of its gpu.jsonl, sorted
names() {
    python3 -c 'import json, sys; print(" ".join(sorted(k for k in json.loads(open(sys.argv[1]).readline()) if "/" in k)))' "$1/gpu.jsonl"
}

# with CODE FAKE ARGUMENT...: as run, with a library of the tests' own
with() {
    local code=$1 how=$2
    shift 2
    FAKE_NVML=$how LD_LIBRARY_PATH=$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} run "$code" train "$@"
}

with 0 '' "${small[@]}" --run-dir all train.steps=6 --quiet
[ "$(names all)" = 'gpu/0/memory_mib gpu/0/power_w gpu/0/temperature_c gpu/0/utilization_percent' ] || fail "gpu.jsonl has: $(names all)"
python3 - all/gpu.jsonl <<'PY' || fail "gpu.jsonl: $(cat all/gpu.jsonl)"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert lines and all(0 <= o["step"] <= 6 and o["epoch"] >= 0 and o["time_s"] > 0 for o in lines)
assert [o["gpu/0/utilization_percent"] for o in lines] == [40 + i for i in range(len(lines))]
assert all(o["gpu/0/power_w"] == 345.678 and o["gpu/0/temperature_c"] == 61 and o["gpu/0/memory_mib"] > 1024 for o in lines)
PY
n=$((n + 1))
"$LS_BUILD_DIR/tests/tools/events_tool" read all/events.out.tfevents.* >"$work/events" 2>&1
grep -q 'gpu/0/power_w' "$work/events" || fail "TensorBoard has no power: $(head -c 400 "$work/events")"
run 0 report all --out page
for id in gpu-load gpu-memory gpu-power gpu-temperature; do
    grep -q "id=\"$id\"" page/report.html || fail "the report has no chart $id"
done
grep -q gpu all/metrics.jsonl && fail "gauges are in metrics.jsonl"

# A resumed run goes on with its file.
with 75 '' "${small[@]}" --run-dir parts train.steps=8 train.pause_after=3st --quiet
lines=$(wc -l <parts/gpu.jsonl)
with 0 '' --resume parts --quiet
[ "$(wc -l <parts/gpu.jsonl)" -gt "$lines" ] || fail "a resumed run did not go on with gpu.jsonl"

# What the device does not say is left out; where there is nothing, there is no file and no word.
with 0 quiet "${small[@]}" --run-dir quiet train.steps=2 --quiet
[ "$(names quiet)" = 'gpu/0/memory_mib gpu/0/temperature_c' ] || fail "a device that says little: $(names quiet)"
with 0 broken "${small[@]}" --run-dir broken train.steps=2 --quiet
[ ! -e broken/gpu.jsonl ] && [ ! -s "$work/err" ] || fail "a broken library: $(ls broken) $(cat "$work/err")"
run 0 report broken --out page2
grep -q 'gpu-power' page2/report.html && fail "a run without gauges has charts of them"
# A file that is too long to be drawn costs its charts, not the report.
truncate -s 270M broken/gpu.jsonl
run 0 report broken --out page3
says err 'the charts of these GPUs are left out'
fake=${fake}_old
with 0 '' "${small[@]}" --run-dir old train.steps=2 --quiet
[ ! -e old/gpu.jsonl ] && [ ! -s "$work/err" ] || fail "a library without power: $(ls old) $(cat "$work/err")"

[ "$failures" -eq 0 ] && echo "gauges: $n checks, all as expected"
exit $((failures > 0))
