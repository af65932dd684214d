#!/usr/bin/env bash
# predict --measured: results beside predictions, each with its own row; what belongs to none is named, and what is no result is refused.
set -uo pipefail
. "$(dirname "$0")/cli_lib.sh"
enter_work

cat >cal.json <<'J'
{"format": "lockstep-calibration", "version": 1,
 "machine": {"format": "lockstep-machine", "version": 1, "name": "by-hand", "source": "a test", "device": "cpu", "threads": 1, "flop_s": 5e10, "bytes_s": 1e10, "error": 0.1, "own_exchange": true},
 "network": {"format": "lockstep-network", "version": 1, "name": "wires", "inside": {"latency_s": 1e-6, "bytes_s": 1e10}, "node": {"latency_s": 1e-5, "bytes_s": 1e9}, "topology": {"kind": "flat"}}}
J
result() { # RANKS SAMPLES/S FIELD...: a line of `bench --json`; a field is "name": value
    local line="\"event\": \"bench\", \"experiment\": \"mnist\", \"settings\": [\"batch.per_rank=8\"], \"device\": \"cpu\", \"strategy\": \"ddp\", \"mode\": \"synthetic\", \"ranks\": $1, \"threads\": 1, \"hosts\": 1,
 \"cores\": 64, \"oversubscribed\": false, \"batch_per_rank\": 8, \"batch_global\": 8, \"steps\": 10, \"samples_per_s\": {\"p16\": $(($2 * 9 / 10)), \"p50\": $2, \"p84\": $(($2 * 11 / 10))}, \"mean_samples_per_s\": $2" change
    shift 2
    line=${line//$'\n'/}
    for change in "$@"; do line=$(sed -E "s/${change%%: *}: (\[[^]]*\]|\{[^}]*\}|[^,]*)/$change/" <<<"$line"); done
    echo "{$line}"
}
ask=(predict mnist batch.per_rank=8 --machine cal.json --ranks 1,2,4 --ranks-per-node 4)

# -- what is compared
run 0 "${ask[@]}" --csv
rate=$(awk -F, '$1 == 2 { printf "%d", $7 }' "$work/out")
[ "$rate" -gt 100 ] || fail "no rate: $(cat "$work/out")"
{ result 2 "$rate"; echo '{"event": "profile"}'; result 2 $((rate * 2)); result 2 $((rate * 2)); result 4 100; } >a.jsonl
run 0 "${ask[@]}" --json --measured a.jsonl
holds '"measured" not in o["points"][0]' \
    'o["points"][1]["measured"]["results"] == 3 and o["points"][2]["measured"]["results"] == 1' \
    'o["points"][1]["samples_per_s"] < o["points"][1]["measured"]["samples_per_s"]["p50"] < 2.2 * o["points"][1]["samples_per_s"]' \
    'abs(o["points"][1]["samples_per_s"] / o["points"][1]["measured"]["samples_per_s"]["p50"] - 1 - o["points"][1]["measured"]["error"]) < 1e-6' \
    'abs(o["points"][1]["measured"]["step_s"] * o["points"][1]["measured"]["samples_per_s"]["p50"] / 16 - 1) < 1e-6' \
    'o["points"][2]["measured"]["error"] > 100 and not o["points"][2]["measured"]["within"]' \
    'o["measured"]["compared"] == 2 and abs(o["measured"]["largest_error"] / o["points"][2]["measured"]["error"] - 1) < 1e-6' \
    'o["measured"]["unmatched"] == []'
run 0 "${ask[@]}" --measured a.jsonl
says out "within the 90 % band; error of samples/s: median"
says out "(4 ranks ddp)"
says out " outside"
run 0 "${ask[@]}" --csv --measured a.jsonl
[ "$(awk -F, '{ print NF }' "$work/out" | sort -u | wc -l)" = 1 ] || fail "CSV: $(cat "$work/out")"
says out "measured_samples_per_s,measured_samples_per_s_p84,measured_error,within_band,results"
result 2 "$rate" >exact.json
run 0 "${ask[@]}" --json --measured exact.json
holds 'o["points"][1]["measured"]["within"] and abs(o["points"][1]["measured"]["error"]) < 1e-2 and o["measured"]["inside"] == 1'
# Several files: after one another, or with the option each time.
result 1 "$rate" >one.json
run 0 "${ask[@]}" --json --measured one.json exact.json
holds 'o["measured"]["compared"] == 2'
run 0 "${ask[@]}" --json --measured one.json --measured exact.json
holds 'o["measured"]["compared"] == 2'

# On the page: dots on the band, the errors, and what was compared with nothing.
run 0 "${ask[@]}" --measured one.json a.jsonl --out page
for f in page/throughput.svg page/efficiency.svg; do grep -q 'class="mark dot"' $f || fail "$f has no measured point"; done
grep -q "Beside what was measured: " page/report.html || fail "the page does not say how near it came"
head -1 page/predictions.csv | grep -q "measured,error" || fail "$(head -1 page/predictions.csv)"
# Without one rank there is nothing to be efficient against.
run 0 "${ask[@]}" --measured exact.json --out alone
grep -q 'class="mark dot"' alone/throughput.svg && ! grep -q 'class="mark dot"' alone/efficiency.svg || fail "measured efficiency without one rank"

# -- what is compared with nothing is named
{ result 2 "$rate"; result 8 "$rate"; result 2 "$rate" '"experiment": "vit"'; result 2 "$rate" '"batch_per_rank": 16'; result 2 "$rate" '"strategy": "fsdp"'; result 2 "$rate" '"threads": 3'
    result 2 "$rate" '"device": "cuda"'; result 2 "$rate" '"hosts": 2'; result 2 "$rate" '"oversubscribed": true'; result 2 "$rate" '"settings": ["precision=bf16", "seed=3"]'; } >many.jsonl
result 2 "$rate" | sed 's/"ranks"/"beside": 1, "ranks"/' >>many.jsonl
run 0 "${ask[@]}" --measured many.jsonl
for part in "8 ranks are not asked for (--ranks)" "experiment vit, not mnist" "batch 16 per rank, not 8" "strategy fsdp is not asked for (--strategy)" "ranks of 3 threads, and those of machine by-hand have 1" \
    "device cuda, and machine by-hand has cpu" "2 ranks on 2 machines, and the prediction has 2 a machine" "2 ranks were oversubscribed" "measured with precision=bf16, which the prediction does not have" "one rank beside others"; do
    says out "not compared  many.jsonl: $part"
done
says out "1 of 1 within the 90 % band"
run 2 "${ask[@]}" precision=bf16 --measured exact.json
says err "measured without precision=bf16, which the prediction has"
# --memory is a limit of the question, which changes no step where nothing is computed again for it; as a setting it is one like any other.
run 0 "${ask[@]}" --memory 1GiB --measured exact.json
says out "1 of 1 within"
result 2 "$rate" '"settings": ["memory.limit=1GiB"]' >limited.json
run 0 "${ask[@]}" --memory 1GiB --measured limited.json
run 2 "${ask[@]}" memory.limit=1GiB --measured exact.json
says err "measured without memory.limit=1GiB"
run 2 "${ask[@]}" --measured limited.json
says err "measured with memory.limit=1GiB"
# Versions that did not say their strategy trained with the experiment's, or the setting.
sed 's/"strategy": "ddp", //' exact.json >older.json
run 0 "${ask[@]}" --measured older.json
sed 's/"batch.per_rank=8"/"batch.per_rank=8", "parallel.strategy=fsdp"/' older.json >sharded.json
run 0 "${ask[@]}" --strategy all --measured sharded.json
says out "(2 ranks fsdp)"

# -- what is refused
result 2 "$rate" '"experiment": "vit"' >vit.json
run 2 "${ask[@]}" --measured vit.json
says err "nothing that was measured is what is predicted: vit.json: experiment vit, not mnist"
run 2 "${ask[@]}" --measured none.json --out never
says err "--measured none.json: No such file or directory; name results of"
mkdir folder
run 2 "${ask[@]}" --measured exact.json folder
says err "--measured folder: a folder that is no study"
[ ! -e never ] || fail "refused, and left a folder"
head -c 100 exact.json >cut.json
run 3 "${ask[@]}" --measured exact.json cut.json
says err "cut.json: line 1"
echo '{"event": "profile"}' >other.json
run 3 "${ask[@]}" --measured other.json
says err "there is no result of"
result 2 "$rate" '"samples_per_s": {"p16": 3, "p50": 2, "p84": 1}' >wild.json
run 3 "${ask[@]}" --measured wild.json
says err "p16 <= p50 <= p84"

# -- a study's folder
run 0 scale mnist batch.per_rank=8 --ranks 1 --mode weak --steps 3 --repeats 2 --dir st
run 0 "${ask[@]}" --json --measured st
holds 'o["points"][0]["measured"]["results"] == 2 and o["measured"]["compared"] == 1'
run 2 predict mnist batch.per_rank=4 --machine cal.json --ranks 1 --measured st
says err "st: batch 8 per rank, not 4"
rm st/points/*
run 3 "${ask[@]}" --measured st
says err "no point of that study is measured"

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
