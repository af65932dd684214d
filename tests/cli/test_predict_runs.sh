#!/usr/bin/env bash
# predict --until: whole runs with batches, studies, money, memory and failures; what is refused, and how.
set -uo pipefail
. "$(dirname "$0")/cli_lib.sh"
enter_work

head='series,ranks,seed,batch,steps,end,epoch_1,best,final'
cat >study.csv <<END
$head
good,8,1,512,1180,completed,0.9,0.985,0.98
good,8,2,512,1180,completed,0.9,0.985,0.98
good,32,1,2048,300,completed,0.5,0.982,0.98
good,64,1,4096,150,completed,0.5,0.97,0.97
bad,8,1,512,1180,completed,0.9,0.91,0.9
END
on=(--machine edison --network edison)

# -- batches: a way each, and of batch.global what ranks have of it
run 0 predict mnist "${on[@]}" --ranks 1,2 --batches 16,64 --json
holds '[(p["ranks"], p["batch_per_rank"]) for p in o["points"]] == [(1, 16), (1, 64), (2, 16), (2, 64)]' \
    'o["batch_per_rank"] is None' \
    'all(abs(p["samples_per_s"] * p["step_s"]["mid"] / (p["batch_per_rank"] * p["ranks"]) - 1) < 1e-6 for p in o["points"])'
run 0 predict mnist batch.per_rank=16 "${on[@]}" --ranks 2 --json
is batch_per_rank 16
step=$(field points | sed 's/.*"step_s": {[^}]*"mid": \([0-9.e+-]*\).*/\1/')
run 0 predict mnist "${on[@]}" --ranks 2 --batches 16,64 --json
$have_json && { [ "$(field points | sed 's/.*"batch_per_rank": 16, "nodes": [0-9]*, "step_s": {[^}]*"mid": \([0-9.e+-]*\).*/\1/')" = "$step" ] || fail "--batches 16 is not batch.per_rank=16"; }
run 0 predict mnist batch.global=256 "${on[@]}" --ranks 1,4,16 --json
holds '[p["batch_per_rank"] for p in o["points"]] == [256, 64, 16]'
run 0 predict mnist batch.global=256 "${on[@]}" --ranks 1,4 --until 1ep --samples 60000 --json
holds 'all(p["run"]["global_batch"] == 256 and p["run"]["steps"]["mid"] == 235 for p in o["points"])'
# Ranks that do not divide it: an update takes what it says, and not as many times the largest share.
run 0 predict mnist batch.global=100 "${on[@]}" --ranks 7,8 --until 1ep --samples 60000 --json
holds '[p["batch_per_rank"] for p in o["points"]] == [15, 13]' \
    'all(p["run"]["global_batch"] == 100 and p["run"]["steps"]["mid"] == 600 for p in o["points"])' \
    'all(abs(p["samples_per_s"] * p["step_s"]["mid"] / 100 - 1) < 1e-6 for p in o["points"])'
run 0 predict mnist batch.global=512 "${on[@]}" --ranks 7 --until 98% --samples 60000 --study study.csv:good --json
holds 'o["points"][0]["run"]["global_batch"] == 512 and o["points"][0]["run"]["steps"]["mid"] == 1180'

# -- lengths, as train counts them: 60,000 / 128 are 468.75, so 469 steps an epoch
run 0 predict mnist "${on[@]}" --ranks 2 --until 10ep --samples 60000 --json
holds 'o["points"][0]["run"]["steps"] == {"lo": 4690, "mid": 4690, "hi": 4690}' \
    'o["points"][0]["run"]["steps_from"] == "given"' \
    'all(abs(o["points"][0]["run"]["time_s"][k] / (4690 * o["points"][0]["step_s"][k]) - 1) < 1e-7 for k in ("lo", "mid", "hi"))' \
    'o["run"]["cost_in"] == "machine-hours" and abs(o["points"][0]["run"]["cost"]["mid"] * 3600 / (2 * o["points"][0]["run"]["time_s"]["mid"]) - 1) < 1e-7'
run 0 predict mnist data.kind=synthetic "${on[@]}" --ranks 2 --until 1ep --json
samples=$(field run.samples_per_epoch)
run 0 train mnist data.kind=synthetic train.epochs=1 -n 2 --quiet --json
$have_json && { [ "$(field steps)" = $(((samples + 127) / 128)) ] || fail "an epoch has $(field steps) steps, not $samples / 128"; }
run 0 predict mnist parallel.accumulate=4 "${on[@]}" --ranks 2 --until 1ep --samples 60000 --json
holds 'o["points"][0]["run"]["global_batch"] == 512 and o["points"][0]["run"]["steps"]["mid"] == 118'
run 0 predict mnist "${on[@]}" --ranks 2 --until 500st --json
holds 'o["points"][0]["run"]["steps"]["mid"] == 500 and o["run"]["samples_per_epoch"] is None'
run 0 predict mnist "${on[@]}" --ranks 2 --until 1000sa --json
holds 'o["points"][0]["run"]["steps"]["mid"] == 8'
run 1 predict mnist "${on[@]}" --ranks 2 --until 1ep --samples 100
says out "an update of 128 samples, and an epoch has 100"
run 1 predict mnist data.kind=synthetic data.train_range=0:1000 "${on[@]}" --ranks 32 --until 500st # no length needs them, but training would refuse it
says out "an update of 2,048 samples, and an epoch has 1,000"

# -- accuracies: measured, between two that reached it, or no answer
ask=(predict mnist "${on[@]}" --ranks 8,16,32,64,512 --until 98% --samples 60000)
run 0 "${ask[@]}" --study study.csv:good
for part in "batch 4,096: reached by 0 of 1 seed in study.csv:good" "batch 32,768: not measured" "interpolated between batches 512 and 2,048" \
    "batch limit   2,048: the largest at which 98% was reached, by 1 of 1 seed; 4,096: by 0 of 1" "at most       the study does not say"; do says out "$part"; done
run 0 "${ask[@]}" --study study.csv:good --json
holds '[p["run"].get("steps_from") for p in o["points"]] == ["measured", "interpolated", "measured", None, None]' \
    'o["points"][0]["run"]["steps"]["mid"] == 1180' \
    'abs(o["points"][1]["run"]["steps"]["mid"] - (1180 * 300) ** 0.5) < 1e-6' \
    'o["run"]["batch_limit"] == 2048 and o["run"]["accuracy"] == 0.98'
run 1 "${ask[@]}" --study study.csv:bad
says out "no run        has an answer"
says out "batch limit   none"
run 0 scale mnist data.kind=synthetic data.train_range=0:1024 data.test_range=0:256 batch.per_rank=16 train.epochs=2 train.validate_every=1ep --ranks 1 --mode weak \
    --train --repeats 1 --dir trained --json
best=$(python3 -c 'import json; print(100 * max(json.loads(l).get("val/acc_epoch", 0) for l in open("trained/runs/ranks-0001-repeat-01/metrics.jsonl")))' 2>/dev/null || echo 1)
run 0 predict mnist batch.per_rank=16 "${on[@]}" --ranks 1 --samples 1024 --study trained --until "$best%" --json
holds 'o["points"][0]["run"]["steps"]["mid"] in (64, 128)' 'not o["points"][0]["run"]["at_most"]' 'o["run"]["batch_limit"] == 16'
run 2 predict mnist batch.per_rank=16 "${on[@]}" --ranks 1 --samples 5000 --study trained --until "$best%"
says err "is the study of other data?"
run 2 predict mnist-keras "${on[@]}" --ranks 1 --samples 1024 --study trained --until 50%
says err "a study of mnist, and this is a question about mnist-keras"

# -- money, time and memory
ask=(predict resnet18-cifar --machine v100 --network longhorn --ranks 4..32 --until 20ep --samples 50000)
run 0 "${ask[@]}" --price 10 --json
holds 'o["run"]["cost_in"] == "money" and o["run"]["cheapest"] is not None' \
    'all(abs(p["run"]["cost"]["mid"] / (p["nodes"] * 10 / 3600 * p["run"]["time_s"]["mid"]) - 1) < 1e-7 for p in o["points"])' \
    'min(p["run"]["cost"]["mid"] for p in o["points"]) == o["points"][o["run"]["cheapest"]]["run"]["cost"]["mid"]' \
    'min(p["run"]["time_s"]["mid"] for p in o["points"]) == o["points"][o["run"]["fastest"]]["run"]["time_s"]["mid"]' \
    'o["points"][o["run"]["cheapest"]]["run"]["front"] and o["points"][o["run"]["fastest"]]["run"]["front"]'
run 0 "${ask[@]}" --price 10 --deadline 8s --json
holds 'all(("deadline" in p["run"]["beyond"]) == (p["run"]["time_s"]["mid"] > 8) for p in o["points"])' \
    'all(("deadline" in p["run"]["may_be_beyond"]) == (p["run"]["time_s"]["mid"] <= 8 < p["run"]["time_s"]["hi"]) for p in o["points"])' \
    'not any(p["run"]["front"] and p["run"]["beyond"] for p in o["points"])'
run 1 "${ask[@]}" --price 10 --deadline 1s --budget 0.01
for part in "nothing fits" "--budget excludes 4 of 4" "--deadline excludes 4 of 4" "nearest  "; do says out "$part"; done
run 1 "${ask[@]}" --price 10 --deadline 1s --json
holds 'o["run"]["cheapest"] is None and o["run"]["fastest"] is None and o["run"]["nearest"] is not None'
# Memory is that of a plan for just these ranks, as `plan` says it.
run 0 plan resnet18-cifar -n 4,32 --strategy fsdp --ranks-per-node 4 --memory 300MiB --json
rows=$(field rows)
read -r less more < <(python3 -c 'import json, sys; print(*(r["planned_bytes"]["total"] for r in json.loads(sys.argv[1])))' "$rows")
[ "$less" -lt "$more" ] || fail "32 ranks exchange more than 4, and take $more bytes instead of $less"
run 0 predict resnet18-cifar --machine v100 --network longhorn --ranks 4,32 --strategy fsdp --memory $(((less + more) / 2)) --json
holds "[p['memory_bytes'] for p in o['points']] == [$less, $more]" \
    'isinstance(o["points"][0]["error"], dict) and "MiB a rank, more than" in o["points"][1]["error"]'
# One rank has a plan of its own, which computes less again than that of several, and is predicted with it.
run 0 predict resnet18-cifar train.recompute=auto --machine v100 --network longhorn --ranks 1 --ranks-per-node 1 --strategy all --memory 200MiB --json
holds 'all(p["memory_bytes"] <= 200 << 20 and p["step_s"]["mid"] > 0 for p in o["points"])'
# Of as many threads as the machine's ranks have, wherever it is asked.
run 0 plan mnist -n 4,8 --strategy ddp --ranks-per-node 1 --threads 24 --memory 1GiB --json
rows=$(field rows)
run 0 predict mnist "${on[@]}" --ranks 4,8 --memory 1GiB --json
holds "[p['memory_bytes'] for p in o['points']] == [r['planned_bytes']['total'] for r in json.loads('''$rows''')]"
run 0 predict mnist "${on[@]}" --ranks 4,8 --memory 1GiB --threads 2 --json
holds "all(p['memory_bytes'] < r['planned_bytes']['total'] for p, r in zip(o['points'], json.loads('''$rows''')))"
run 1 predict resnet18-cifar --machine v100 --network longhorn --ranks 4,32 --memory 10MiB
says out "more than 10.0 MiB"
says out "nothing fits  --memory; the least is"

# As CSV a row beyond the limit is a row, with its place of within_limits, with a run or without.
for more in "" "--until 1ep --samples 50000"; do
    # shellcheck disable=SC2086 # options
    run 1 predict resnet18-cifar --machine v100 --network longhorn --ranks 4,32 --memory 10MiB $more --csv
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "within_limits") at = i; n = NF } NR > 1 && $at == "0" && $5 > 0 && NF == n { rows++ } END { exit rows != 2 }' "$work/out" ||
        fail "CSV of what does not fit: $(cat "$work/out")"
done
run 0 predict resnet18-cifar --machine v100 --network longhorn --ranks 4 --memory 10GiB --csv
[ "$(awk -F, 'END { print $(NF - 1) }' "$work/out")" = 1 ] || fail "CSV of what fits: $(cat "$work/out")"

# -- failures
ask=(predict mnist "${on[@]}" --ranks 4 --until 10ep --samples 60000)
run 0 "${ask[@]}" --json
holds '"failures" not in o["points"][0]["run"]'
run 0 "${ask[@]}" --mtbf 1h --checkpoint 100ms --restart 10s --json
holds 'o["points"][0]["run"]["failures"]["mtbf_s"] == 900' \
    'abs(o["points"][0]["run"]["failures"]["young_s"] - 180 ** 0.5) < 1e-6' \
    'o["points"][0]["run"]["time_s"]["mid"] > o["points"][0]["run"]["training_s"]["mid"]' \
    '0 < o["points"][0]["run"]["failures"]["lost_share"] < 1'
run 0 "${ask[@]}" --mtbf 30d --checkpoint 2GB/s --restart 1min --json
run 0 train mnist data.kind=synthetic train.steps=1 --quiet --run-dir one
bytes=$(wc -c <one/checkpoints/step-00000001/model.safetensors)
run 0 "${ask[@]}" --mtbf 30d --checkpoint 2GB/s --restart 1min --json
$have_json && holds "$bytes <= o['run']['checkpoint_bytes'] + 20000 and o['run']['checkpoint_bytes'] < 4 * $bytes"
run 1 "${ask[@]}" --mtbf 1s --checkpoint 1h --restart 1h
says out "it would not get on"

run 0 "${ask[@]}" --mtbf 1h --checkpoint 1ms --restart 10s
says out "checkpoints   4 ranks ddp: every "
says out "first order, Young"

# -- CSV and the page
run 0 predict mnist "${on[@]}" --ranks 2,4 --until 1ep --samples 60000 --csv
[ "$(head -1 "$work/out" | tr -cd , | wc -c)" = "$(tail -1 "$work/out" | tr -cd , | wc -c)" ] || fail "CSV: $(cat "$work/out")"
says out ",run_mid_s,"
run 0 predict mnist "${on[@]}" --ranks 1..16 --batches 32,64 --until 98% --study study.csv:good --samples 60000 --price 2 --out page
[ -s page/cost.svg ] && [ -s page/runs.csv ] && grep -q "Cost against time" page/report.html || fail "the page: $(ls page)"
grep -q "Without an answer" page/report.html || fail "the page does not say what has no answer"

# -- what is refused
# refuses TEXT ARGUMENT...: exit code 2, and the text
refuses() {
    local text=$1
    shift
    run 2 predict mnist "${on[@]}" --ranks 2 "$@"
    says err "$text"
}
for batches in 0 -1 16,x 64,32 ""; do refuses "--batches" "--batches=$batches"; done
refuses '"batch.per_rank" and "batch.global" exclude each other' --batches 16 batch.global=64
for until in 10 ep -1ep 0ep 0% 101% 98 10min nan% 1.5st infep ""; do refuses "--until" "--until=$until" --samples 60000; done
refuses "--until 1e15ep: that is 1e+24 samples; expected at most 1,000,000,000,000,000" --until 1e15ep --samples 1000000000 batch.per_rank=1
run 0 predict mnist "${on[@]}" --ranks 1 --until 1e15st --json
holds 'o["points"][0]["run"]["steps"]["mid"] == 1e15 and o["points"][0]["run"]["time_s"]["mid"] > 0'
refuses "--study FOLDER" --until 98% --samples 60000
refuses "asks for none" --until 10ep --samples 60000 --study study.csv:good
refuses "--deadline: of which run?" --deadline 1h
refuses "--price: of which run?" --price 2
refuses "--study: of which run?" --study study.csv
refuses "--mtbf: of which run?" --mtbf 1d
run=(--until 1ep --samples 60000)
refuses "at what price?" "${run[@]}" --budget 10
refuses "--deadline: \"6\" is no time" "${run[@]}" --deadline 6
refuses "--deadline: \"-6h\" is no time" "${run[@]}" --deadline -6h
refuses "--deadline: \"3 weeks\" is no time" "${run[@]}" --deadline "3 weeks"
for option in --price --budget --samples; do for value in 0 -1 x nan; do refuses "$option: \"$value\" is no positive number" --until 1ep "$option=$value"; done; done
refuses "--memory: \"much\"" --memory much
refuses "what does a checkpoint take?" "${run[@]}" --mtbf 1d
refuses "--restart TIME" "${run[@]}" --mtbf 1d --checkpoint 5s
refuses "without it nothing is said" "${run[@]}" --checkpoint 5s
refuses "without it nothing is said" "${run[@]}" --restart 5s
refuses "--checkpoint: \"5\" is neither a time nor a rate" "${run[@]}" --mtbf 1d --checkpoint 5 --restart 1s
refuses "--checkpoint: \"fast\" is no size" "${run[@]}" --mtbf 1d --checkpoint fast/s --restart 1s
refuses "--mtbf: \"0h\" is no time" "${run[@]}" --mtbf 0h --checkpoint 5s --restart 1s
refuses "how many samples has an epoch?  Add --samples N" --until 1ep data.path=nowhere
acc=(--until 98% --samples 60000)
refuses "2 series (good, bad)" "${acc[@]}" --study study.csv
refuses "there is no series \"best\"" "${acc[@]}" --study study.csv:best
refuses "--study nothing.csv" "${acc[@]}" --study nothing.csv
refuses "is the study of other data?" --until 98% --samples 50000 --study study.csv:good
echo "${head%,final}" >short.csv
refuses "short.csv:1: column \"final\" is missing" "${acc[@]}" --study short.csv
: >empty.csv
refuses "empty.csv: the file is empty" "${acc[@]}" --study empty.csv
printf '%s\na,8,1,512,1180,completed,nan,0.98,0.98\n' "$head" >nan.csv
refuses "nan.csv:2: epoch_1: \"nan\"" "${acc[@]}" --study nan.csv
printf '%s\na,8,1,512,1180,completed,0.9,0.98,0.98\na,8,1,512,1180,completed,0.9,0.98,0.98\n' "$head" >twice.csv
refuses "are in line 2 already" "${acc[@]}" --study twice.csv
run 2 predict --calibrate --until 1ep
says err "--until is for predictions"
run 2 scale mnist --ranks 1 --mode weak --until 1ep
says err "is an option of predict"

[ "$failures" -eq 0 ]
