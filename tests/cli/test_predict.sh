#!/usr/bin/env bash
# predict: tables, JSON, CSV and the page from presets and files; what it refuses, and how.
set -uo pipefail
. "$(dirname "$0")/cli_lib.sh"
enter_work

run 0 predict --list
for part in Machines Networks v100 theta infiniband-edr; do says out "$part"; done

run 0 predict mnist --machine edison --network edison --ranks 1..64
for part in "machine       edison" "network       edison" "described, not measured" efficiency "band          90 %" "64 ranks ddp would take"; do says out "$part"; done
run 0 predict mnist --machine edison --network edison --ranks 1,8,64 --strategy all --json
is event predict experiment mnist machine edison network edison measured_ranks 0
holds '[p["ranks"] for p in o["points"]] == [1] * 4 + [8] * 4 + [64] * 4' \
    'all(p["step_s"]["lo"] <= p["step_s"]["mid"] <= p["step_s"]["hi"] for p in o["points"])' \
    'all(abs(sum(p["parts_s"].values()) / p["step_s"]["mid"] - 1) < 1e-6 for p in o["points"])' \
    'all(abs(p["samples_per_s"] * p["step_s"]["mid"] / (64 * p["ranks"]) - 1) < 1e-6 for p in o["points"])' \
    'all(p["engine"] in ("closed", "replay", "shared") and p["why"] for p in o["points"])' \
    'len({p["step_s"]["mid"] for p in o["points"][:4]}) == 1 and all(p["efficiency"] == 1 for p in o["points"][:4])'
# What nobody has measured makes the band wider with every doubling.
run 0 predict resnet18-cifar --machine edison --network ethernet-10g --ranks 4..256 --ranks-per-node 1 --json
holds 'all(a["error"]["extrapolated"] < b["error"]["extrapolated"] for a, b in zip(o["points"], o["points"][1:]))'
run 0 predict mnist --machine edison --network edison --ranks 2,4 --csv
[ "$(wc -l <"$work/out")" = 3 ] && [ "$(head -1 "$work/out" | tr -cd , | wc -c)" = "$(tail -1 "$work/out" | tr -cd , | wc -c)" ] || fail "CSV: $(cat "$work/out")"

# Half of the bytes on a wire that is the bound take half of the time.
run 0 predict resnet18-cifar batch.per_rank=1 --machine h200 --network ethernet-10g --ranks 16 --ranks-per-node 1 --json
cp "$work/out" wide
run 0 predict resnet18-cifar batch.per_rank=1 --machine h200 --network ethernet-10g --ranks 16 --ranks-per-node 1 parallel.wire=bf16 --json
! $have_json || python3 - wide "$work/out" <<'END' || fail "16 bits on the wire do not halve what it takes"
import json, sys
wide, narrow = (json.loads(open(f).read().splitlines()[-1])["points"][0] for f in sys.argv[1:])
assert wide["parts_s"]["exposed"] > 0.5 * wide["step_s"]["mid"], wide
assert 0.4 < narrow["wire_bytes"] / wide["wire_bytes"] < 0.6, narrow
assert narrow["step_s"]["mid"] < 0.8 * wide["step_s"]["mid"], narrow
END

# 100,000 ranks are an answer like any other.
run 0 predict resnet18-cifar --machine knl --network ethernet-25g --ranks 100000 --csv
says out "100000,"

# A step that is known as a whole: one rank takes it, and others what is added to it.
run 0 predict mnist --machine edison --network edison --ranks 1,8 --step-time 0.25 --json
holds 'o["step_time_s"] == 0.25' 'abs(o["points"][0]["step_s"]["mid"] - 0.25) < 1e-9' 'o["points"][0]["error"]["fit"] == 0' \
    'abs(o["points"][1]["parts_s"]["compute"] - 0.25) < 1e-9' '0.25 < o["points"][1]["step_s"]["mid"] < 0.26'
run 0 predict mnist --machine edison --network edison --ranks 1 --step-time 0.25 --out given
says out "so that a rank alone takes the given 250.0 ms"
grep -q "step-time 0.25" given/report.html || fail "the page does not say that the step was given"

# GPUs of a machine keep no weights in common: each makes every update, whatever is at hand here; ranks on CPUs share them out.
compute() { # NAME ARGUMENT...: the time that 8 ranks compute in a step, in the file NAME
    local to=$1
    shift
    run 0 predict resnet18-cifar --ranks 8 "$@" --json
    sed 's/.*"compute":\([0-9.e+-]*\).*/\1/; q' "$work/out" >"$to"
}
compute apart --machine v100 --network longhorn --ranks-per-node 1
compute together --machine v100 --network longhorn --ranks-per-node 4
cmp apart together || fail "GPUs of a machine share out their updates"
compute apart --machine edison --network edison --ranks-per-node 1 --step-time 1
compute together --machine edison --network edison --ranks-per-node 4 --step-time 1
paste apart together | awk '{ exit !($2 < 0.9999 * $1) }' || fail "CPUs of a machine each make all updates: $(paste apart together)"

# A row that cannot be had is said in its place; none at all is an error.
run 0 predict mnist --machine edison --network edison --ranks 6,8 --strategy hybrid --ranks-per-node 4
says out "6 ranks do not make up groups of 4"
run 2 predict mnist --machine edison --network edison --ranks 3 --strategy hybrid --ranks-per-node 2
says err "do not make up groups"

# Updates that are cut into as many shards whatever the ranks: a plan for each number of them, and shards for all, as in training.
run 0 predict mnist "reproducible=true" --machine edison --network edison --ranks 1,2,3,8,16 --json
holds '[p["ranks"] for p in o["points"] if "error" in p and type(p["error"]) is str] == [16]' 'len({round(p["parts_s"]["compute"], 9) for p in o["points"][:4]}) == 4'
says out "parallel.shards=8 must lie between the number of ranks (16)"
run 2 predict mnist reproducible=true --machine edison --network edison --ranks 16
says err "parallel.shards=8 must lie between the number of ranks (16)"
# Of 3 ranks one has 3 of the 8 shards, and a shard is of 24 samples and not 8: 9/8 of what a rank alone computes, but for launches.
run 0 predict mnist reproducible=true parallel.shards=8 batch.per_rank=1024 --machine edison --network edison --ranks 1,3,8 --step-time 10 --json
holds 'o["points"][0]["step_s"]["mid"] == 10' '1 < o["points"][1]["parts_s"]["compute"] / o["points"][2]["parts_s"]["compute"] < 1.3' 'o["points"][2]["parts_s"]["compute"] < 10'
# A batch of which one rank cannot have a sample in each shard: it is refused for one rank, and not for more.
run 0 predict mnist reproducible=true batch.per_rank=4 --machine edison --network edison --ranks 1,2 --json
holds 'type(o["points"][0]["error"]) is str and o["points"][1]["step_s"]["mid"] > 0'

# Machines by number: the first ones are as contiguous, halves in two racks share what lies between these; a row that needs more says so.
cat >racks.json <<'END'
{"format": "lockstep-network", "version": 1, "name": "racks", "inside": {"latency_s": 1e-6, "bytes_s": 1e10}, "node": {"latency_s": 1e-5, "bytes_s": 1e9},
 "topology": {"kind": "tree", "switches": [{"name": "core"}, {"name": "a", "parent": "core", "up_bytes_s": 2e8}, {"name": "b", "parent": "core", "up_bytes_s": 2e8}],
  "machines": [{"switch": "a", "count": 4}, {"switch": "b", "count": 4}]}}
END
ask=(predict resnet18-cifar --machine v100 --network ./racks.json --ranks-per-node 1 --ranks 1,2,4 --csv)
run 0 "${ask[@]}"
cp "$work/out" inorder
run 0 "${ask[@]}" --placement 0,1,2,3,6
cut -d , -f 1-13 inorder >inorder.cut
cut -d , -f 1-13 "$work/out" | cmp -s - inorder.cut || fail "the first machines by number are not those in order: $(cat "$work/out")"
printf '0, 5\n1 4\n' >places.txt
run 0 "${ask[@]}" --placement ./places.txt
awk -F, 'NR == FNR { step[$1] = $5; next } FNR > 2 && !($5 > 1.5 * step[$1]) { bad = 1 } END { exit bad }' inorder "$work/out" || fail "two halves are not slower: $(cat inorder "$work/out")"
run 2 "${ask[@]}" --placement 0,8
says err "--placement: the placement names machine 8, the network has 0 to 7"
run 2 "${ask[@]}" --placement 0,3,0
says err "--placement: the placement names machine 0 twice"
run 0 predict mnist --machine edison --network edison --ranks-per-node 2 --ranks 2,4,8 --placement 5,0
says out "--placement names 2 machines, and 8 ranks are on 4"
run 0 predict mnist --machine edison --network edison --ranks-per-node 2 --ranks 4 --placement 5,0 --out placed
run 2 predict mnist --machine edison --network edison --ranks-per-node 1 --ranks 8 --placement 5
says err "--placement names 1 machine, and 8 ranks are on 8"
for bad in 0,x 0,-1 1.5,2 0,5,0 9999999999999999999999 0,0x5 ./nothing.txt inorder.csv/ ""; do
    run 2 predict mnist --machine edison --network edison --ranks 2 "--placement=$bad"
    says err "--placement"
done
printf '0 5\n7;\n' >odd.txt
run 2 predict mnist --machine edison --network edison --ranks 2 --placement odd.txt
says err '--placement odd.txt: "7;" is no machine'

# What would help: also other settings, which are compiled for it and leave the answer as it was.
run 0 predict resnet18-cifar --machine edison --network ethernet-10g --ranks 16 --ranks-per-node 1
for part in "twice the bandwidth" "half the latency" "twice as fast computing" "with parallel.overlap=false" "with parallel.bucket_mb=32"; do says out "$part"; done
run 0 predict resnet18-cifar --machine edison --network ethernet-10g --ranks 16 --ranks-per-node 1 parallel.overlap=false
says out "with parallel.overlap=true"
run 0 predict mnist --machine edison --network edison --ranks 16
! grep -q bucket_mb "$work/out" || fail "one bucket cannot be larger: $(cat "$work/out")"

# The page: at any number of ranks that was asked for, of each strategy one step in time; one choice is made without a script.
run 0 predict mnist --machine edison --network edison --ranks 1..16 --out page
[ -s page/report.html ] && [ -s page/throughput.svg ] && [ -s page/predictions.csv ] || fail "the page: $(ls page)"
for k in 1 2 4 8 16; do [ -s page/timeline-$k-ddp.svg ] || fail "no step of $k ranks: $(ls page)"; done
[ -s page/sensitivity-2-ddp.svg ] && [ ! -e page/sensitivity-1-ddp.svg ] || fail "what would help: $(ls page)"
[ "$(grep -c '<input type="radio"' page/report.html)" = 5 ] && [ "$(grep -c ' checked>' page/report.html)" = 1 ] || fail "the choice of ranks: $(grep '<input' page/report.html)"
# The step in time is of the machines that its row is of.
ask=(predict resnet18-cifar --machine edison --network edison --ranks 64 --ranks-per-node 1 parallel.overlap=false)
run 0 "${ask[@]}" --out near
run 0 "${ask[@]}" --placement random --out far
! cmp -s near/timeline-64-ddp.svg far/timeline-64-ddp.svg || fail "one step in time does not follow the placement"
run 0 predict mnist --machine edison --network edison --ranks 2,4 --strategy all --ranks-per-node 1 --out all
[ -s all/parts-zero1.svg ] && [ -s all/timeline-4-fsdp.svg ] || fail "the page of all strategies: $(ls all)"
[ "$(grep -o 'name="choice-[0-9]*"' all/report.html | sort -u | wc -l)" = "$(grep -c ' checked>' all/report.html)" ] || fail "not one chosen of each choice"

# A folder that cannot be one is refused before anything is computed; a page that fails does not take the table with it; a refusal leaves no folder.
: >a-file
run 2 predict mnist --machine edison --network edison --ranks 2 --out a-file
says err "--out: the page cannot be written: a-file"
mkdir -p half/throughput.svg/x
run 1 predict mnist --machine edison --network edison --ranks 2 --out half
says err "throughput.svg"
says out "experiment    mnist"
run 2 predict mnist --machine edison --network edison --ranks 3 --strategy hybrid --ranks-per-node 2 --out never
[ ! -e never ] || fail "refused, and left a folder"

# -- what is refused
run 2 predict
says err "what is to be predicted is missing"
run 2 predict mnist --ranks 8
says err "neither --machine nor --network"
run 2 predict mnist --machine edsion --network edison
says err "edison"
run 2 predict mnist --machine edison --network nothing.json
says err "nothing.json"
run 2 predict mnist --machine edison --network edison --ranks 0
says err "expected numbers of ranks"
run 2 predict mnist --machine edison --network edison --strategy all-of-them
says err "expected all, or one of"
run 2 predict mnist --machine edison --network edison --algorithm tree
says err "ours, ring"
run 2 predict mnist --machine edison --network edison --placement near
says err "contiguous, random"
run 2 predict mnist --machine edison --network edison --engine fast
says err "closed, replay or shared"
for bad in 0 -1 fast; do
    run 2 predict mnist --machine edison --network edison --step-time $bad
    says err "--step-time: \"$bad\" is no positive number"
done
# Of one batch: what another takes is not known.
run 2 predict mnist --machine edison --network edison --step-time 0.1 --batches 16,64
says err "is what a rank takes for one batch, and these are several (16, 64 per rank: 16, 64)"
run 2 predict mnist --machine edison --network edison --step-time 0.1 batch.global=512 --ranks 1,4,8
says err "(512 of all ranks: 512, 128)"
run 0 predict mnist --machine edison --network edison --step-time 0.1 batch.global=512 --ranks 8
run 0 predict mnist --machine edison --network edison --step-time 0.1 --batches 16 --ranks 1,8
cat >measured.json <<'END'
{"format": "lockstep-machine", "version": 1, "name": "measured", "source": "a test", "device": "cpu", "threads": 1,
 "flop_s": 1e12, "bytes_s": 1e11, "error": 0.1, "own_exchange": true,
 "nodes": [{"op": "matmul", "attributes": "", "layer": "fc", "backward": false, "points": [[64, 0.001, 1e6, 1e6]]}]}
END
run 0 predict mnist --machine ./measured.json --network edison --ranks 8
run 2 predict mnist --machine ./measured.json --network edison --ranks 8 --step-time 0.25
says err 'nodes of the machine "measured" were measured (1)'
run 2 predict mnist --machine ./measured.json --network edison --ranks 8 --threads 2
says err 'the machine "measured" was measured with ranks of 1'
run 0 predict mnist --machine ./measured.json --network edison --ranks 8 --threads 1
echo '{"format": "lockstep-machine", "version": 1, "name": "many", "source": "a test", "device": "cpu", "threads": 1000000, "flop_s": 1e12, "bytes_s": 1e11, "error": 0.1, "own_exchange": true}' >many.json
run 0 predict mnist --machine ./many.json --network edison --ranks 8 --memory 8GiB
run 2 predict --calibrate --step-time 1
says err "--step-time is for predictions"
for option in "--sizes 1KiB" "--seconds 3" "--steps 5" "--nodes 2" "--slurm" "--master a:1" "--node-rank 1" "--join-timeout 3" "--insecure"; do
    # shellcheck disable=SC2086 # an option and its value
    run 2 predict mnist --machine edison --network edison $option
    says err "${option%% *} is for --calibrate"
    says err "and not for predictions"
done
for option in "--ranks 3" "--until 5ep" "--machine edison" "--out page" "--json" "--csv"; do
    # shellcheck disable=SC2086
    run 2 predict --list $option
    says err "${option%% *} is for predictions"
    says err "and not for --list"
done
run 2 predict --list mnist
says err '"mnist" is one word too many'
run 2 predict mnist --machine edison --network edison --json --csv
says err "choose one"
echo '{"format":"lockstep-network","version":9}' >new.json
run 2 predict mnist --machine edison --network ./new.json
says err "new.json"
says err 9
# Between machines nothing was measured, so nothing is said of them.
run 0 bench --collectives -n 2 --sizes 1KiB,64KiB,1MiB --steps 5 --export two.json
run 0 predict --calibrate --out cal.json two.json
run 2 predict mnist --machine edison --network ./cal.json --ranks 4 --ranks-per-node 2
says err "nothing was measured between machines"
run 0 predict mnist --machine edison --network ./cal.json --ranks 2 --ranks-per-node 2
grep -q '"measured_per_node": 2' cal.json || fail "the calibration does not say how many ranks of a machine were measured"
# Nor of what is inside machines that had one rank each; a file that does not say is taken at its word.
link='{"latency_s": 1e-5, "bytes_s": 1e9}'
apart="\"format\": \"lockstep-network\", \"version\": 1, \"name\": \"apart\", \"inside\": $link, \"node\": $link, \"topology\": {\"kind\": \"flat\"}, \"measured_ranks\": 4, \"measured_nodes\": 4"
echo "{$apart, \"measured_per_node\": 1}" >apart.json
echo "{$apart}" >unsaid.json
run 2 predict mnist --machine edison --network ./apart.json --ranks 4 --ranks-per-node 4
says err "nothing was measured between ranks of a machine, and these are 4 on each"
run 0 predict mnist --machine edison --network ./apart.json --ranks 4 --ranks-per-node 1
run 0 predict mnist --machine edison --network ./apart.json --ranks 1 --ranks-per-node 4
run 0 predict mnist --machine edison --network ./unsaid.json --ranks 4 --ranks-per-node 4

[ "$failures" -eq 0 ]
