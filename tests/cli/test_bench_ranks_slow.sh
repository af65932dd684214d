#!/usr/bin/env bash
# test_bench_ranks.sh: bench and plan on several ranks: what they print adds up.
set -uo pipefail
. "$(dirname "$0")/cli_lib.sh"

# --- plan: without running anything -----------------------------------------------------------------
run 0 plan mnist -n 4 --json
holds 'o["ranks"] == 4 and len(o["buckets"]) == 2'
holds 'o["buckets"][0] >= o["parameters"]["total"] * 4'           # all gradients fit the first
holds 'o["planned_bytes"]["comm"] >= sum(o["buckets"])'            # a part of its own, and a share of the result
holds 'o["planned_bytes"]["total"] == sum(v for k, v in o["planned_bytes"].items() if k != "total")'
run 0 plan mnist -n 2 parallel.bucket_mb=0.02 --json
holds 'len(o["buckets"]) > 3 and o["buckets"][-1] < 4096'
run 0 plan mnist -n 2
says out "exchange      2 ranks"
says out "exchange "

# --- bench ------------------------------------------------------------------------------------------
run 0 bench mnist -n 2 batch.per_rank=8 --threads 1 --steps 5 --json
holds 'o["ranks"] == 2 and o["steps"] == 5 and o["batch_per_rank"] == 8 and o["threads"] == 1'
holds 'abs(o["samples_per_s"]["p50"] * o["step_s"]["p50"] / 16 - 1) < 1e-6'
holds '0 < o["comm_exposed_s"] < o["step_s"]["p84"] * 5'
holds 'o["allocs_per_step"] == 0 and o["planned_bytes"] == o["used_bytes"] and "compared" not in o'
run 0 bench mnist -n 2 batch.per_rank=8 --threads 1 --seconds 0.05 --json # by the clock: ranks agree on the end
holds 'o["steps"] >= 5'
run 0 bench mnist -n 2 batch.per_rank=8 --threads 1 --steps 6 reproducible=true --json
holds 'o["compared"]["setting"] == "reproducible=false" and o["allocs_per_step"] == 0'
holds 'abs(o["compared"]["ratio"] * o["compared"]["step_s"]["p50"] / o["step_s"]["p50"] - 1) < 1e-6'
run 0 bench mnist -n 2 batch.per_rank=8 --threads 1 --steps 5 --against parallel.overlap
says out "with parallel.overlap=false"
says out "2 ranks of 1 thread"
run 0 bench mnist -n 3 batch.global=16 parallel.accumulate=2 --threads 1 --steps 3 --json # uneven shares
holds 'abs(o["samples_per_s"]["p50"] * o["step_s"]["p50"] / 16 - 1) < 1e-6'
run 0 bench mnist -n 2 batch.per_rank=8 --threads 1 --steps 3 --profile
says out all_reduce_finish
run 2 bench mnist --against optimizer.lr
says err "write key=value"
run 2 bench mnist --against optimizer.lrr=1
says err "did you mean"

# --- the summary of a run ---------------------------------------------------------------------------
run 0 train mnist -n 2 batch.per_rank=8 --threads 1 train.steps=3 data.kind=synthetic --quiet --json --run-dir "$work/run"
holds 'o["comm"]["kind"] == "local" and len(o["comm"]["buckets"]) == 2 and o["comm"]["exposed_s_per_step"] > 0'
holds 'len(o["comm"]["rank_compute_s"]) == 2 and min(o["comm"]["rank_compute_s"]) > 0'
run 0 train mnist batch.per_rank=8 --threads 1 train.steps=3 data.kind=synthetic --quiet --json --run-dir "$work/one"
holds 'o["comm"] == {"kind": "self", "buckets": [], "exposed_s_per_step": 0.0, "waiting_s_per_step": 0.0, "rank_compute_s": []}'

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
