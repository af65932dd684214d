#!/usr/bin/env bash
# scale --predict: predictions are written down before the first point is measured, kept, compared, and refused where they are not the study's.
set -uo pipefail
. "$(dirname "$0")/cli_lib.sh"
enter_work

# A calibration by hand: ranks of one thread, links inside a machine and between two.
calibration() { # NAME FIELD=VALUE...: of the machine
    local machine='"format": "lockstep-machine", "version": 1, "name": "by-hand", "source": "a test", "device": "cpu", "threads": 1, "flop_s": 5e10, "bytes_s": 1e10, "error": 0.1, "own_exchange": true'
    local to=$1 change
    shift
    for change in "$@"; do machine=$(sed "s/\"${change%%=*}\": [^,]*/\"${change%%=*}\": ${change#*=}/" <<<"$machine"); done
    echo "{\"format\": \"lockstep-calibration\", \"version\": 1, \"machine\": {$machine}, \"network\": {\"format\": \"lockstep-network\", \"version\": 1, \"name\": \"wires\",
 \"inside\": {\"latency_s\": 1e-6, \"bytes_s\": 1e10}, \"node\": {\"latency_s\": 1e-5, \"bytes_s\": 1e9}, \"topology\": {\"kind\": \"flat\"}, \"measured_ranks\": 4, \"measured_nodes\": 2, \"error\": 0.1}}" >"$to"
}
calibration cal.json
study=(scale mnist batch.per_rank=8 --mode weak --steps 3 --repeats 1)
cores=$(nproc)
counts=1,$((cores + 1)) over=$((cores + 1))

# -- refused before anything is made
run 2 "${study[@]}" --ranks 1 --predict none.json --dir no
says err none.json
run 2 "${study[@]}" --ranks 1 --predict nothing-of-that-name --dir no
calibration threads.json threads=2
run 2 "${study[@]}" --ranks 1 --predict threads.json --dir no
says err "describes ranks of 2 threads, and the study's have 1: say --threads 2, or calibrate with --threads 1"
calibration device.json device='"cuda"'
run 2 "${study[@]}" --ranks 1 --predict device.json --dir no
says err "describes ranks on device cuda, and the study's are on cpu"
calibration version.json version=7
run 2 "${study[@]}" --ranks 1 --predict version.json --dir no
says err version.json
says err 7
run 2 "${study[@]}" --ranks 1 --network cal.json --dir no
says err "--predict CALIBRATION is missing"
run 2 scale --compare a b --predict cal.json
says err "leave --predict out"
[ ! -e no ] || fail "a refused study left $(ls no)"

# -- ended by force between the two: what was said stays as it was, and nothing was measured by then
"$LOCKSTEP" "${study[@]}" --ranks $counts --predict cal.json --steps 100000000 --dir st >/dev/null 2>&1 &
pids=($!)
while kill -0 "${pids[0]}" 2>/dev/null && [ ! -e st/predicted.json ]; do breathe; done
kill -KILL "${pids[0]}"
wait "${pids[0]}" 2>/dev/null
pids=()
[ -e st/predicted.json ] && [ -z "$(ls st/points)" ] || fail "nothing was written down before points were measured: $(ls st st/points)"
mv st/study.json st/asked.json
sed 's/"steps": 100000000/"steps": 3/' st/asked.json >st/study.json && rm st/asked.json
before=$(stat -c '%i %y' st/predicted.json)
run 0 "${study[@]}" --ranks $counts --predict cal.json --dir st --json
[ "$(stat -c '%i %y' st/predicted.json)" = "$before" ] || fail "a study that went on made its predictions anew"
holds 'all(p["predicted"]["lo"] <= p["predicted"]["mid"] <= p["predicted"]["hi"] for p in o["points"][:1])' \
    'abs(o["points"][0]["predicted"]["mid"] / o["points"][0]["samples_per_s"]["p50"] - 1 - o["points"][0]["error"]) < 1e-6' \
    'o["points"][0]["within"] == (o["points"][0]["predicted"]["lo"] <= o["points"][0]["samples_per_s"]["p50"] <= o["points"][0]["predicted"]["hi"])' \
    'not o["points"][0]["predicted_after"]' \
    '"predicted" not in o["points"][1] and "oversubscribed" in o["points"][1]["unpredicted"]' \
    'o["predicted"]["compared"] == 1 and o["predicted"]["inside"] == int(o["points"][0]["within"]) and o["predicted"]["calibration"] == "cal.json"' \
    'abs(o["predicted"]["largest_error"] - abs(o["points"][0]["error"])) < 1e-9'

# -- shown
run 0 "${study[@]}" --ranks $counts --predict cal.json --dir st
says out "predicted [90 %]"
says out "within the 90 % band; error of samples/s: median"
says out "No prediction for $over ranks: oversubscribed, $over threads on $cores core"
for f in st/report.html st/throughput.svg st/efficiency.svg; do grep -q "predicted, 90 % band" $f || fail "$f shows no prediction"; done
grep -q 'predicted' st/table.md || fail "table.md: $(cat st/table.md)"
head -1 st/table.csv | grep -q "predicted_samples_per_s_lo,predicted_samples_per_s,predicted_samples_per_s_hi,.*predicted_error,within_band,predicted_after" || fail "table.csv: $(head -1 st/table.csv)"
# Without the option the study still shows what it has; so does its page made again.
run 0 "${study[@]}" --ranks $counts --dir st
says out "within the 90 % band"
rm st/report.html
run 0 report st
grep -q "Predicted with cal.json" st/report.html || fail "the page made again has no prediction"

# -- another calibration is another study
calibration other.json flop_s=9e10
cp -r st kept
run 2 "${study[@]}" --ranks 1,2 --predict other.json --dir st
says err "was predicted with another calibration, cal.json"
says err "--fresh"
diff -r st kept || fail "a refused calibration changed the study"
cp cal.json elsewhere.json # the same under another name
run 0 "${study[@]}" --ranks $counts --predict elsewhere.json --dir st
run 0 "${study[@]}" --ranks 1 --predict other.json --dir st --fresh --json
is predicted.calibration other.json
holds 'not o["points"][0]["predicted_after"]'

# -- a study that was begun without it
run 0 "${study[@]}" --ranks 1 --dir late
says out samples/s
! grep -q predicted "$work/out" || fail "predictions that nobody asked for: $(cat "$work/out")"
run 0 "${study[@]}" --ranks 1 --predict cal.json --dir late
says out "made after"
says out "Predictions made after the measurement, which prove less: for ranks 1"
run 0 "${study[@]}" --ranks $counts --dir late --json
holds 'o["points"][0]["predicted_after"]' 'o["points"][1]["unpredicted"].startswith("none was asked for")'

# -- damage
head -c 200 late/predicted.json >cut && cp cut late/predicted.json
run 3 "${study[@]}" --ranks 1 --predict cal.json --dir late
says err late/predicted.json
says err "Remove the file"
run 3 report late
rm late/predicted.json
run 0 "${study[@]}" --ranks 1 --predict cal.json --dir late

# -- strong: each count has its own batch, and its own plan
run 0 scale mnist batch.global=16 --ranks 1,2 --mode strong --steps 3 --repeats 1 --predict cal.json --dir strong --json
holds '[p["ranks"] for p in o["points"]] == [1, 2]' \
    'o["points"][0].get("predicted") and abs(o["points"][0]["predicted"]["mid"] * o["points"][0]["predicted_step_s"]["mid"] - 16) < 1e-3' \
    '"predicted" not in o["points"][1] or abs(o["points"][1]["predicted"]["mid"] * o["points"][1]["predicted_step_s"]["mid"] - 16) < 1e-3'

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
