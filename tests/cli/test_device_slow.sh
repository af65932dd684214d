#!/usr/bin/env bash
# The device as a setting of what measures: benchmarks and studies; and the memory of a device that has its own.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
small=(linear model.size=4 model.channels=1 model.classes=2 data.kind=synthetic data.train_range=0:16 data.test_range=16:20
    batch.per_rank=4 train.report_every=1st)
printf 'model: {trial: linear, size: 4, channels: 1}\ndevice: ref\n' >ref.yaml

run 0 bench ref.yaml batch.per_rank=2 --steps 1 --json
is device ref
run 0 bench ref.yaml batch.per_rank=2 --steps 1 --json --device cpu
is device cpu

# A study is of one device, whoever names it.
run 0 scale ref.yaml batch.per_rank=2 --ranks 1 --mode weak --repeats 1 --steps 1 --dir study
grep -q '"device": "ref"' study/study.json || fail "the study is not of the file's device: $(cat study/study.json)"
run 0 scale ref.yaml batch.per_rank=2 device=ref --ranks 1 --mode weak --repeats 1 --steps 1 --dir study
says out 'measured before'
run 2 scale ref.yaml batch.per_rank=2 --device cpu --ranks 1 --mode weak --repeats 1 --steps 1 --dir study
says err 'device'

# A device with memory of its own tells how much of it is used: what was planned.
for way in '' 'parallel.accumulate=2' 'reproducible=true' '-n 2' '-n 2 parallel.share=always' '-n 2 reproducible=true'; do
    # shellcheck disable=SC2086 # words
    run 0 bench "${small[@]}" --device far --steps 2 --json parallel.shards=2 --threads 1 $way
    holds 'o["planned_bytes"] == o["used_bytes"]' 'o["used_memory"]["of"] == "device"' \
        'o["used_memory"]["device_bytes"] + o["used_memory"]["host_bytes"] == o["used_bytes"]' \
        'o["used_memory"]["device_peak_bytes"] >= o["used_memory"]["device_bytes"] > 0'
done
run 0 bench "${small[@]}" --steps 2
says out "used: the host's"
run 0 bench "${small[@]}" --steps 2 --device far
says out "of the device's (at most "
run 0 train "${small[@]}" --device far train.steps=2 --json
holds 'o["device"] == "far"' 'o["device_bytes"]["peak"] >= o["device_bytes"]["used"] > 0'

[ "$failures" -eq 0 ] && echo "device_slow: $n checks, all as expected"
exit $((failures > 0))
