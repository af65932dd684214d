#!/bin/bash
# usage: bench/b16_ways.sh [build]: about 150 s on a machine with AMX and at least two cores.
# Which way of multiplying bf16 tiles is fastest there; for measuring alone (bench/b16_impls.c).
build=${1:-build}
lscpu | grep -E 'Model name|Thread|Core|L1d|L2|L3'
cat /sys/devices/system/cpu/cpu0/topology/thread_siblings_list /sys/kernel/mm/transparent_hugepage/enabled
export LOCKSTEP_TUNE=off
"$build"/tests/backend/test_b16 >/dev/null 2>&1 && echo "test_b16: right" || echo "test_b16: WRONG"
for way in 3,2,1,2,1,1 2,2,3,2,1,2,16,0,1 1,1,1,0,1,1,0,1; do
    LS_B16_TRY=$way "$build"/tests/backend/test_b16 >/dev/null 2>&1 && echo "test_b16 $way: right" || echo "test_b16 $way: WRONG"
done
"$build"/bench_b16 kernel 1 0.3
echo "-- cores 0 and 1"; taskset -c 0,1 "$build"/bench_b16 kernel 2 0.3
echo "-- cores 0 and 8"; taskset -c 0,8 "$build"/bench_b16 kernel 2 0.1 0 3 3,2,1
"$build"/bench_b16 products 2 1.0
echo "-- cores 0 and 1"; taskset -c 0,1 "$build"/bench_b16 products 2 0.5 0 3,2,1,2,1,1 3,2,1,2,1,1,0,0,1 3,2,1,2,1,1,256,0,1 9 9,0,0,2,1,1
"$build"/bench_b16 products 16 0.3 0 3,2,1,2,1,1 3,2,1,2,1,1,0,0,1 2,2,1,2,1,1 3,0,0,2,1,1 0,0,0,0,1,1
"$build"/bench_b16 products 1 0.3 0 3,2,1,2,1,1 3,0,0,2,1,1
# whole steps, in turns
for round in 1 2; do
    for way in 0 3,0,0,2,1,1 3,2,1,2,1,1 3,2,1,2,1,1,0,0,1; do
        LS_B16_TRY=$way "$build"/lockstep bench vit batch.per_rank=8 precision=bf16 --threads 2 --seconds 3 --json |
            tail -1 | python3 -c "import json, sys; s = json.load(sys.stdin)['step_s']; print('step $way', {k: round(1e3 * v) for k, v in s.items() if isinstance(v, float)})"
    done
done
