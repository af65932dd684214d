#!/usr/bin/env bash
# test_scale_slow.sh: a scaling study by the program: stopped and continued, oversubscribed points, two compared.
set -uo pipefail
. "$(dirname "$0")/cli_lib.sh"
study=$work/study

# --- refusals: nothing is created -------------------------------------------------------------------
run 2 scale mnist --mode weak --dir "$study"
says err "which rank counts"
run 2 scale mnist --ranks 1,2 --dir "$study"
says err "--mode weak"
run 2 scale mnist --ranks 1,3 --mode strong --dir "$study"
says err "3 ranks cannot share"
run 2 scale mnist more --ranks 1,2 --mode weak --dir "$study"
says err "one word too many"
run 2 scale mnist optimizer.lrr=1 --ranks 1,2 --mode weak --dir "$study"
says err "did you mean"
run 2 scale --compare "$work"
says err "two studies"
[ ! -e "$study" ] || fail "a refused study left $study"

# --- interrupted after the first point, and run again -----------------------------------------------
command=(scale mnist batch.per_rank=8 --ranks 1,2 --mode weak --steps 5 --repeats 2 --dir "$study")
first=$study/points/ranks-0001-repeat-01.json
"$LOCKSTEP" "${command[@]}" >"$work/out" 2>"$work/err" &
pid=$!
while kill -0 "$pid" 2>/dev/null && [ ! -e "$first" ]; do breathe; done
kill -INT "$pid"
wait "$pid"
code=$?
n=$((n + 3))
[ "$code" -eq 75 ] || fail "interrupted: exit code $code, not 75: $(cat "$work/err")"
says err "the same command goes on"
[ -e "$first" ] || fail "the first point is not there"
[ "$(ls "$study/points" | wc -l)" -lt 4 ] || fail "all points were measured before the interrupt"
before=$(stat -c '%i %y' "$first")
run 0 "${command[@]}" --json
[ "$(stat -c '%i %y' "$first")" = "$before" ] || fail "the first point was measured again"
is event scale
is mode weak
holds 'o["complete"] and [p["ranks"] for p in o["points"]] == [1, 2]'
holds 'all(p["repeats"] == 2 and p["samples_per_s"]["p16"] <= p["samples_per_s"]["p50"] for p in o["points"])'
holds 'o["points"][0]["efficiency"] == {"lo": 1.0, "mid": 1.0, "hi": 1.0}'
holds 'o["points"][1]["efficiency"]["lo"] < o["points"][1]["efficiency"]["mid"] < o["points"][1]["efficiency"]["hi"]'
for f in report.html efficiency.svg throughput.svg points.csv table.md; do
    n=$((n + 1))
    [ -s "$study/$f" ] || fail "no $f"
done
run 0 "${command[@]}"
says out "measured before"
run 2 "${command[@]}" seed=3
says err "seed: not given and 3"
says err "--fresh"

# --- damage -----------------------------------------------------------------------------------------
head -c 100 "$first" >"$work/torn" && cp "$work/torn" "$first"
run 0 "${command[@]}"
says err "the point is measured again"
echo '{' >"$study/study.json"
run 3 "${command[@]}"
says err "study.json"

# --- more threads than cores ------------------------------------------------------------------------
run 0 scale mnist batch.per_rank=8 --ranks 1,2 --mode strong --steps 3 --repeats 1 --threads "$(nproc)" --dir "$work/over" --json
holds '[p["oversubscribed"] for p in o["points"]] == [False, True]'
grep -q oversubscribed "$work/over/table.md" || fail "table.md does not mark the oversubscribed point"
grep -q oversubscribed "$work/over/efficiency.svg" || fail "efficiency.svg does not mark the oversubscribed point"
grep -q "says nothing about scaling" "$work/over/report.html" || fail "report.html does not say what oversubscribed means"
grep -q "^2,1,[0-9]*,1," "$work/over/points.csv" || fail "points.csv does not mark it: $(cat "$work/over/points.csv")"

# --- what intervals rest on -------------------------------------------------------------------------
for k in 1 2; do # the second one goes on with the points of the first
    run 0 scale mnist batch.per_rank=8 --ranks 1,2 --mode weak --steps 5 --repeats "$k" --dir "$work/sure" --json
    holds 'o["points"][0]["interval_from"] == "none"' 'o["points"][1]["expected_half_width"]["8"] < o["points"][1]["expected_half_width"]["3"]'
    [ "$k" -eq 1 ] && holds 'o["points"][1]["oversubscribed"] or o["points"][1]["interval_from"] == "assumed"'
    [ "$k" -eq 2 ] && holds 'o["points"][1]["interval_from"] in ("repeats", "steps")'
done
run 0 scale mnist batch.per_rank=8 --ranks 1,2 --mode weak --steps 5 --repeats 2 --dir "$work/sure"
says out "interval from"
head -1 "$work/sure/table.csv" | grep -q "efficiency_lo,efficiency,efficiency_hi" || fail "table.csv has no bounds"

# --- training, and comparing ------------------------------------------------------------------------
train=(scale mnist data.kind=synthetic train.steps=4 batch.per_rank=8 --ranks 1,2 --mode weak --repeats 1 --train)
run 0 "${train[@]}" --dir "$work/a" --json
holds 'all(p["time_to_solution_s"]["mid"] > 0 and 0 <= p["acc"]["mid"] <= 1 for p in o["points"])'
[ -s "$work/a/time.svg" ] && [ -s "$work/a/accuracy.svg" ] || fail "no time.svg or accuracy.svg"
cp -r "$work/a" "$work/b"
run 0 scale --compare "$work/a" "$work/b/study.json" --json
holds 'o["all"]["verdict"] == "same" and [p["verdict"] for p in o["points"]] == ["same", "same"]'
run 0 scale --compare "$work/a" "$work/b"
says out "no difference that the spread allows"
says out "one repeat: spread assumed"
run 2 scale --compare "$work/a" "$work/over"
says err "mode: weak and strong"
run 0 scale --compare "$work/a" "$work/over" --force
says out "they ask different questions"
run 2 scale mnist --ranks 1 --mode weak --force --dir "$work/none"
says err "--force is for --compare"
# Two settings are what studies are compared for: named with both values.
sed 's/"train.steps=4"/"train.steps=4", "optimizer.lr=0.5"/' "$work/a/study.json" >"$work/b/study.json"
run 0 scale --compare "$work/a" "$work/b"
says out "differ in     optimizer.lr: not given and 0.5"

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
