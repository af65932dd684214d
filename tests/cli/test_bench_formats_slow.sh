#!/usr/bin/env bash
# test_bench_formats.sh: what bench prints for other tools can be read by them, and results can be compared.
set -uo pipefail
. "$(dirname "$0")/cli_lib.sh"
tiny=(bench mnist batch.per_rank=4 --threads 1)

# --- formats ----------------------------------------------------------------------------------------
run 0 "${tiny[@]}" -n 2 --steps 25 --format horovod
says out "Number of CPUs: 2"
says out "Iter #1: "
n=$((n + 1))
awk '/^Iter #/ { sum += $3; iters++ } /^Img\/sec per CPU/ { mean = $4 } /^Total img\/sec on 2 CPU/ { total = $6 }
     END { m = sum / iters; exit !(iters == 2 && m > 0 && (mean / m - 1) ^ 2 < 1e-6 && (total / m / 2 - 1) ^ 2 < 1e-6) }' \
    "$work/out" || fail "iterations, mean and total do not fit: $(cat "$work/out")"
run 0 "${tiny[@]}" --steps 5 --format cosmogan
n=$((n + 1))
awk -F '|' 'NR == 3 { exit !($2 == 1 && $3 > 0 && $5 <= $3 && $3 <= $6 && ($6 - $5 - $4) ^ 2 <= (1e-2 * $6) ^ 2) }' "$work/out" ||
    fail "the row is no median with its central 68 %: $(cat "$work/out")"
run 0 "${tiny[@]}" -n 2 --steps 5 --format mlperf
if $have_json; then
    n=$((n + 1))
    python3 - "$work/out" <<'P' || fail "the log cannot be read: $(cat "$work/out")"
import json, sys
lines = [json.loads(l.split(":::MLLOG ", 1)[1]) for l in open(sys.argv[1])]
assert all(set(l) == {"namespace", "time_ms", "event_type", "key", "value", "metadata"} for l in lines)
at = {l["key"]: l for l in lines}
assert at["global_batch_size"]["value"] == 8 and at["submission_benchmark"]["value"] == "mnist"
assert at["run_start"]["time_ms"] <= at["run_stop"]["time_ms"] and at["run_stop"]["metadata"]["status"] == "success"
assert at["tracked_stats"]["value"]["throughput"] > 0 and at["tracked_stats"]["metadata"]["step"] == 5
P
fi
run 2 bench mnist --format horovdo
says err "horovod, cosmogan or mlperf"
run 2 bench mnist --format mlperf --json
says err "choose one"
run 2 bench mnist --format mlperf --profile
says err "no place for --profile"

# --- costs ------------------------------------------------------------------------------------------
run 0 "${tiny[@]}" -n 2 --steps 5 parallel.bucket_mb=0.02 --format json --export "$work/costs.json"
cp "$work/out" "$work/a.json"
if $have_json; then
    n=$((n + 1))
    python3 - "$work/costs.json" <<'P' || fail "the costs do not add up: $(head -c 600 "$work/costs.json")"
import json, sys
o = json.load(open(sys.argv[1]))
nodes, buckets = o["plans"][0]["nodes"], o["buckets"]
assert o["plans"][0]["part"] == "step" and o["plans"][0]["batch"] == 4
# All FLOPs of the plan are those of its nodes.
assert abs(sum(x["flops"] for x in nodes) / o["plans"][0]["batch"] / o["result"]["all_flops_per_sample"] - 1) < 1e-6
assert min(x["seconds"] for x in nodes) >= 0 and sum(x["seconds"] for x in nodes) > 0
assert len(buckets) == sum(x["op"] == "all_reduce_start" for x in nodes) > 3
assert all(0 <= b["ready_s"] <= b["needed_s"] <= b["finished_s"] and b["exchange_s"] > 0 for b in buckets)
assert [b["ready_s"] for b in buckets] == sorted(b["ready_s"] for b in buckets)
assert len(o["steps_s"]) == o["result"]["steps"] == 5
P
fi
run 2 bench mnist reproducible=true --export "$work/costs.json"
says err "several at a time"

# --- two results ------------------------------------------------------------------------------------
sed 's/"mean_samples_per_s":/"mean_samples_per_s":1/' "$work/a.json" >"$work/b.json" # at least ten times the rate
run 0 bench --compare "$work/a.json" "$work/a.json"
says out "no difference that the spread allows: B has 1.000 times"
says out "nothing that is recorded"
run 0 bench --compare "$work/a.json" "$work/b.json" --json
holds 'o["ratio"]["mid"] > 1.5 and o["interval"] == "steps" and o["same_measurement"] and o["differences"] == []'
sed 's/"host":"[^"]*"/"host":"elsewhere"/g; s/"threads":1/"threads":2/' "$work/a.json" >"$work/c.json"
run 0 bench --compare "$work/a.json" "$work/c.json"
says out "elsewhere"
says out "threads: 1 and 2 (!)"
says out "two different measurements"
printf 'something else\n' >>"$work/c.json"
run 3 bench --compare "$work/a.json" "$work/c.json"
says err "$work/c.json: line 2"
run 3 bench --compare "$work/nothing" "$work/a.json"
says err "$work/nothing"
run 2 bench --compare "$work/a.json"
says err "two files"

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
