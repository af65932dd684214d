#!/usr/bin/env bash
# predict_models.sh [OUTPUT]: how well a model's step follows from what other models' nodes take on this machine: every model is measured
# alone (one rank of one thread), then each is predicted by a calibration of all the others.  A table; exit code 1 where fewer than
# LEAST (80) percent of the steps lie within their band of 90 %.
#
#   CASES: MODEL:BATCH[:SETTING,...]; SECONDS_EACH (1.5); LOCKSTEP (build/lockstep)
# What OUTPUT has already is not measured again.  Needs python3 and a quiet core.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
lockstep=$(readlink -f "${LOCKSTEP:-$here/build/lockstep}") seconds=${SECONDS_EACH:-1.5}
export LOCKSTEP_EXPERIMENTS=${LOCKSTEP_EXPERIMENTS:-$here/experiments}
out=$(mkdir -p "${1:-predict-models}" && readlink -f "${1:-predict-models}")
cases=${CASES:-mnist:8 mnist:32 mnist-keras:8 mnist-keras:32 resnet18-cifar:8 resnet18-cifar:32 resnet18-cifar-stem:8 resnet18-cifar-stem:32
    vit-tiny:8 vit-tiny:32 dcgan-d:8 dcgan-g:8 aae:2 cyclegan-g:1:model.size=128 cyclegan-g:2:model.size=128 cosmogan:2:model.size=64}

each() { # CASE: sets model, batch and settings
    IFS=: read -r model batch settings <<<"$1"
    settings=${settings//,/ }
}

for case in $cases; do
    each "$case"
    # shellcheck disable=SC2086 # settings are words
    [ -f "$out/$model:$batch.json" ] || "$lockstep" bench "$model" batch.per_rank="$batch" $settings -n 1 --threads 1 --seconds "$seconds" --export "$out/$model:$batch.json" >/dev/null
done
for case in $cases; do
    each "$case"
    others=()
    for file in "$out"/*:*.json; do [[ $file == "$out/$model":* ]] || others+=("$file"); done
    "$lockstep" predict --calibrate "${others[@]}" --out "$out/calibration.json" >/dev/null
    # shellcheck disable=SC2086 # settings are words
    "$lockstep" predict "$model" batch.per_rank="$batch" $settings --threads 1 --ranks 1 --network ethernet-10g --machine "$out/calibration.json" --json | tail -n 1 >"$out/predicted"
    python3 -c '
import json, sys
step = json.load(open(sys.argv[1]))["points"][0]["step_s"]
got = json.load(open(sys.argv[2]))["result"]["step_s"]["p50"]
print(sys.argv[3], *(1e3 * step[k] for k in ("lo", "mid", "hi")), 1e3 * got)' "$out/predicted" "$out/$model:$batch.json" "$model:$batch"
done | python3 -c '
import sys
inside = near = n = 0
mark = (" outside", "")
print("| step | from ms | middle | to | measured | error |\n|---|---|---|---|---|---|")
for line in sys.stdin:
    name, *figures = line.split()
    lo, mid, hi, got = map(float, figures)
    within, error = lo <= got <= hi, mid / got - 1
    n, inside, near = n + 1, inside + within, near + (abs(error) <= 0.15)
    print(f"| {name} | {lo:.2f} | {mid:.2f} | {hi:.2f} | {got:.2f} | {100 * error:+.0f} %{mark[within]} |")
print(f"{inside} of {n} within the band, {near} within 15 %")
sys.exit(n == 0 or 100 * inside < float(sys.argv[1]) * n)' "${LEAST:-80}"
